"""First use: compiling says so, once; without a writable cache kernels work; ``likeset warmup`` fills the cache."""

from __future__ import annotations

import ast
import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python
from typer.testing import CliRunner

import likeset
import likeset as ls
from likeset import compiling
from likeset.cli import app, main
from likeset.numba_pipeline import KernelCompiler, Part

PACKAGE = Path(likeset.__file__).parent
NOWHERE = "/dev/null/no-folder-can-be-made-here"
COMPILE_SLOWLY = """
import time
import numba
import likeset.compiling as compiling
compiling.PATIENCE = {patience}

@numba.extending.overload_method(numba.types.Float, "take_a_while")
def take_a_while(x):
    time.sleep(0.6)          # while compiling, not while running
    return lambda x: 2.0 * x

def function(x):
    return x.take_a_while()
function.__module__ = {module!r}
for _ in range(2):           # the same again, as another function
    assert compiling.njit(cache=False)(function)(1.5) == 3.0
"""
KERNEL = """
import numpy as np
import likeset.compiling as compiling
import likeset.special as special
print(float(special._log_gamma(np.array([3.0]))[0]))
print(compiling.compilations(), compiling.cache_folder())
"""
COLLECTOR = """
import gc
import numba
import likeset.compiling as compiling
seen = []

@numba.extending.overload_method(numba.types.Float, "look")
def look(x):
    seen.append(gc.isenabled())
    return lambda x: 2.0 * x

def function(x):
    return x.look()

def wrong(x):
    return x.look().no_such_thing
function.__module__ = wrong.__module__ = "likeset.example"
for collecting in (True, False):
    gc.enable() if collecting else gc.disable()
    assert compiling.njit(cache=False)(function)(1.5) == 3.0
    assert gc.isenabled() is collecting
    try:
        compiling.njit(cache=False)(wrong)(1.5)
    except numba.TypingError:
        assert gc.isenabled() is collecting
    else:
        raise AssertionError("this cannot be compiled")
assert seen and not any(seen), seen
"""
WARMUP = "import sys; sys.argv[1:] = ['warmup', '--family', 'poisson']; from likeset.__main__ import main; main()"
POISSON = """
import likeset as ls
seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=2.0))
seq.update([1.0, 0.0], 3)
seq.update([[0.0, 1.0]] * 20, [0, 1, 0, 0, 2] * 4)
print(float(seq.set.upper([[0.0, 1.0]])[0]))
from likeset.compiling import compilations
print(compilations())
"""


def python(program, quiet=False, **changes):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **changes}
    environment.pop("LIKESET_QUIET", None)
    if quiet:
        environment["LIKESET_QUIET"] = "1"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def without_cache(tmp_path_factory):
    """An environment in which none of numba's places for a cache can be written.

    Nothing of numba is replaced. A copy of the package has a *file* where each __pycache__ folder would be, and the
    user's cache folder and NUMBA_CACHE_DIR lie below a file. Permissions are not what is tested: they do not bind an
    administrator, who may run these tests; numba handles both alike, as an OSError.
    """
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, folder / "likeset", ignore=shutil.ignore_patterns("__pycache__"))
    for below in [folder / "likeset", *(p for p in (folder / "likeset").rglob("*") if p.is_dir())]:
        (below / "__pycache__").touch()
    return {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": NOWHERE, "XDG_CACHE_HOME": NOWHERE, "HOME": NOWHERE}


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder is set as on Linux")
def test_kernels_work_without_a_writable_cache(without_cache):
    for _ in range(2):
        done = python(KERNEL, **without_cache)
        assert done.returncode == 0, done.stderr
        value, report = done.stdout.splitlines()
        assert float(value) == pytest.approx(0.6931471805599453)
        compiled, folder = report.split()
        assert int(compiled) > 0 and folder == "None"  # compiled in the second process again


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder is set as on Linux")
@pytest.mark.slow
def test_a_sequence_works_without_a_writable_cache_and_says_once_that_it_compiles_again(without_cache):
    done = python(POISSON, **without_cache)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) == pytest.approx(float(python(POISSON).stdout.split()[0]))
    (line,) = done.stderr.splitlines()
    assert "every process compiles again" in line and "NUMBA_CACHE_DIR" in line


def test_a_full_disk_costs_the_cache_and_not_the_call(tmp_path):
    full = """
import errno
import likeset.compiling as compiling
from numba.core.caching import IndexDataCacheFile

def full(*ignored):
    raise OSError(errno.ENOSPC, "No space left on device")
IndexDataCacheFile.save = full
compiling.PATIENCE = 600.0  # on a busy machine compiling takes long, and would be announced as well
"""
    done = python(full + KERNEL, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0].startswith("0.693") and done.stdout.split()[-1] == "None"
    (line,) = done.stderr.splitlines()
    assert "could not be kept" in line


def test_kernels_come_from_the_cache_in_silence(tmp_path):
    first, second = (python(KERNEL, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert int(first.stdout.split()[1]) > 0
    assert second.stdout.split()[1:] == ["0", str(next(tmp_path.iterdir()))]
    assert second.stderr == ""


def test_compiling_is_announced_once_after_a_while_of_it():
    done = python(COMPILE_SLOWLY.format(patience=0.3, module="likeset.example"))
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("likeset: compiling kernels")


def test_garbage_is_collected_after_compiling_as_it_was_before():
    """Not in between, which would take 15 % of the time; also where compiling fails, and for who collects by hand."""
    done = python(COLLECTOR, quiet=True)
    assert done.returncode == 0, done.stderr


def test_short_compilations_add_up(monkeypatch):
    delays = []

    class Recorded(threading.Timer):
        def start(self):
            delays.append(self.interval)

    monkeypatch.delenv("LIKESET_QUIET", raising=False)
    monkeypatch.setattr(compiling, "Timer", Recorded)
    announcer = compiling._Announcer()
    event = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=compiling.njit)})
    for _ in range(2):
        announcer.on_start(event)
        announcer.on_start(event)  # a function called by the first
        time.sleep(0.05)
        announcer.on_end(event)
        announcer.on_end(event)
    assert delays[0] == compiling.PATIENCE
    assert len(delays) == 2 and delays[1] <= compiling.PATIENCE - 0.05


@pytest.mark.parametrize(
    ("patience", "module", "quiet"),
    [(60.0, "likeset.example", False), (0.3, "likeset.example", True), (0.3, "somebody.elses", False)],
    ids=["quick", "LIKESET_QUIET", "not ours"],
)
def test_compiling_is_silent(patience, module, quiet):
    done = python(COMPILE_SLOWLY.format(patience=patience, module=module), quiet=quiet)
    assert (done.returncode, done.stderr) == (0, "")


def test_warmup_names_the_families_it_knows(capfd, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["likeset", "warmup", "--family", "cauchy"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "poisson" in capfd.readouterr().err


def test_warmup_says_how_long_it_took_and_where_the_cache_is(monkeypatch):
    monkeypatch.setenv("LIKESET_QUIET", "1")
    done = CliRunner().invoke(app, ["warmup", "--family", "bernoulli"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "kernels compiled in" in said and str(compiling.cache_folder()) in "".join(done.output.split("\n"))


@pytest.mark.slow
def test_after_warmup_the_first_use_compiles_nothing(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    warm = python(WARMUP, **cache)
    assert warm.returncode == 0 and warm.stderr == "", warm.stderr
    done = python(POISSON, **cache)
    assert done.stdout.split()[1] == "0" and done.stderr == ""


@pytest.mark.parametrize("damage", ["of another release", "torn", "empty"])
def test_a_cache_that_cannot_be_read_is_made_again(tmp_path, damage):
    """An upgrade in place leaves an index that names classes which are gone; a crash may leave half of one."""
    first = python(KERNEL, NUMBA_CACHE_DIR=str(tmp_path))
    indices = list(tmp_path.rglob("*.nbi"))
    assert indices
    for index in indices:
        content = index.read_bytes()
        with index.open("rb") as stream:
            pickle.load(stream)  # numba's version, which stays as it is
            start = stream.tell()
        gone = b"clikeset.compiling\nNoLongerThere\n."  # a pickle of a class that does not exist
        index.write_bytes({"of another release": content[:start] + gone, "torn": content[:-7], "empty": b""}[damage])
    again, third = (python(KERNEL, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert again.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    assert again.stdout.splitlines()[1].split()[0] != "0"
    assert third.stdout.splitlines()[1].split()[0] == "0"


def calls_from_python(source: Path, hidden: set[str]) -> list[str]:
    """Calls of functions without an interface to Python that are not in compiled functions."""
    found: list[str] = []

    def look(node: ast.AST, compiled: bool) -> None:
        if isinstance(node, ast.FunctionDef):
            compiled = compiled or bool(decorators(node) & {"kernel", "inner", "njit"})
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in hidden and not compiled:
            found.append(f"{source.name}:{node.lineno} {node.func.id}")
        for child in ast.iter_child_nodes(node):
            look(child, compiled)

    look(ast.parse(source.read_text()), False)
    return found


def test_a_part_of_a_kernel_is_compiled_once_as_a_part_of_it():
    """Neither optimised nor turned into machine code by itself; what it computes is the kernel's."""
    options = {"fastmath": compiling.REORDER}

    @compiling.inner(**options)
    def square(x):
        return x * x if x > 0.0 else 1.0 / x

    @numba.njit(pipeline_class=KernelCompiler)
    def sum_of_squares(x):
        total = 0.0
        for i in range(x.size):
            total += square(x[i])
        return total

    if not hasattr(square, "overloads"):
        pytest.skip("nothing is compiled: NUMBA_DISABLE_JIT")
    assert sum_of_squares(np.array([1.0, 2.0, -4.0])) == 4.75
    (part,) = (compiled.library for compiled in square.overloads.values())
    assert isinstance(part, Part)
    assert part._finalized
    assert not part.get_pointer_to_function(square.overloads[square.signatures[0]].fndesc.llvm_func_name)


def decorators(node: ast.FunctionDef) -> set[str]:
    calls = (d.func for d in node.decorator_list if isinstance(d, ast.Call))
    return {call.id for call in calls if isinstance(call, ast.Name)}


def options_of(node: ast.FunctionDef) -> set[str]:
    """Names of the options that a function is compiled with."""
    calls = [d for d in node.decorator_list if isinstance(d, ast.Call) and isinstance(d.func, ast.Name)]
    return {option.arg for call in calls for option in call.keywords if option.arg}


def test_functions_that_hand_out_arrays_count_references() -> None:
    """Numba refuses a function that makes an array without counting references, not one that hands on another's."""
    handing_out = 0
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        tuples = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and decorators(node) & {"inner", "kernel"} and node.returns:
                named = {part.id for part in ast.walk(node.returns) if isinstance(part, ast.Name)}
                if named & ({"Array", "IntArray", "Mask"} | tuples):
                    handing_out += 1
                    assert "allocates" in options_of(node), (path.name, node.name, ast.unparse(node.returns))
    assert handing_out > 10


def test_every_file_with_parts_of_kernels_is_watched() -> None:
    """A kernel is compiled again if a part of it changes in another file; numba looks at the kernel's own only."""
    holding = set()
    for path in PACKAGE.rglob("*.py"):
        functions = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef))
        if any("inner" in decorators(function) for function in functions):
            holding.add(path.relative_to(PACKAGE).as_posix())
    assert len(holding) > 20
    assert {name for name in holding if not name.startswith("_solver/")} <= set(compiling._WITH_PARTS)
    assert all((PACKAGE / name).exists() for name in compiling._WITH_PARTS)


def test_kernels_are_compiled_again_when_a_part_changes(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "likeset", ignore=shutil.ignore_patterns("__pycache__"))
    look = "import likeset.compiling as c, numpy as np, likeset._solver.certificate as k;" \
        "k.certificate(np.ones(2), np.ones(2), 1.0, np.zeros(2), 1.0, 1.0); print(c.compilations())"  # fmt: skip

    def compiled() -> int:
        where = dict(os.environ, PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path / "cache"), LIKESET_QUIET="1")
        run = subprocess.run([sys.executable, "-c", look], env=where, cwd=tmp_path, capture_output=True, check=True)
        return int(run.stdout)

    assert compiled() > 0 and compiled() == 0
    part = tmp_path / "likeset" / "curves.py"
    os.utime(part, (part.stat().st_atime, part.stat().st_mtime + 10))
    assert compiled() > 0 and compiled() == 0


def test_an_array_made_where_references_are_not_counted_is_refused() -> None:
    @compiling.inner()
    def made(n):
        return np.empty(n).sum()

    @compiling.inner(allocates=True)
    def counted(n):
        return np.empty(n).size

    if not hasattr(made, "overloads"):
        pytest.skip("nothing is compiled: NUMBA_DISABLE_JIT")

    @numba.njit(pipeline_class=KernelCompiler)
    def calls_made(n):
        return made(n)

    @numba.njit(pipeline_class=KernelCompiler)
    def calls_counted(n):
        return counted(n)

    with pytest.raises(numba.core.errors.NumbaError):
        calls_made(3)
    assert calls_counted(3) == 3


@pytest.mark.parametrize("family", (ls.Gaussian(0.5), ls.Poisson(), ls.Laplace(0.5)), ids=repr)
@pytest.mark.parametrize("voices", (None, ls.Patience()), ids=repr)
def test_what_kernels_allocate_is_freed(family: ls.families.Family, voices: ls.Patience | None) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    seq = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), voices=voices)
    seq.update(x, family.sample(x @ [0.3, -0.2, 0.1], rng))

    def answer() -> None:
        seq.update(x[0], family.sample(np.zeros(1), rng)[0])
        seq.set.interval(x[:5])

    def alive() -> int:
        stats = numba.core.runtime.rtsys.get_allocation_stats()
        return stats.mi_alloc - stats.mi_free

    if not hasattr(compiling.kernel()(lambda: 0), "overloads"):
        pytest.skip("nothing is compiled: NUMBA_DISABLE_JIT")
    for _ in range(3):
        answer()
    _nrt_python.memsys_enable_stats()
    before = alive()
    for _ in range(10):
        answer()
    gc.collect()
    assert 0 <= alive() - before <= 8  # held by the latest snapshot; one per call that is never freed would be ten


def test_no_function_without_interface_is_called_from_python() -> None:
    """Such a call would be no exception but a crash."""
    trees = {p: ast.parse(p.read_text()) for p in [*PACKAGE.rglob("*.py"), *Path(__file__).parent.glob("*.py")]}
    hidden = {
        (path.stem, node.name)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and "inner" in decorators(node)
    }
    assert len(hidden) > 30
    wrong = []
    for path, tree in trees.items():
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
            if (node.module.split(".")[-1], alias.name) in hidden
        }
        wrong += calls_from_python(path, imported | {name for home, name in hidden if home == path.stem})
    assert not wrong


@pytest.mark.slow
def test_an_unknown_numba_compiles_the_plain_way(tmp_path):
    """The shortcuts through the compiler are for versions that they were made for."""
    program = (
        "import numba; numba.version_info = numba.version_info._replace(short=(99, 0)); import likeset as ls; "
        "from likeset import compiling; assert not compiling._KERNEL; "
        "s = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 1.0), voices=None); s.update([1.0, 0.0], 0.3); "
        "print(s.set.upper([[1.0, 0.0]]))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "LIKESET_QUIET": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout.startswith("["), done.stderr
