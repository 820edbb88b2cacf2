"""The core needs numpy, scipy and numba and little else; what an extra installs is asked for in one sentence."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import likeset as ls
from likeset.errors import MissingPackageError
from likeset.extras import EXTRA_OF, optional_packages

PACKAGE = Path(ls.__file__).parent
PYPROJECT = PACKAGE.parent.parent / "pyproject.toml"
INSTALLED_AS = {"sklearn": "scikit-learn", "lazy_loader": "lazy-loader"}
EVERYTHING_OPTIONAL = ("matplotlib", "typer", "rich", "sklearn", "joblib", "distributed")


def python(hidden, program, *arguments):
    """Run a program in a process in which importing the hidden packages fails as if they were not installed."""
    hide = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in hidden)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", hide + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_engine_works_without_any_extra():
    program = """
import likeset as ls
seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=2.0))
seq.update([1.0, 0.0], 3)
seq.update([[0.0, 1.0]] * 20, [0, 1, 0, 0, 2] * 4)
print(float(seq.set.upper([[0.0, 1.0]])[0]))
policy = ls.UCB(seq, [[1.0, 0.0], [0.0, 1.0]])
policy.tell(policy.ask(), 2)
"""
    done = python(EVERYTHING_OPTIONAL, program)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0


def test_functions_work_with_a_kernel_of_ones_own_and_no_scikit_learn():
    program = """
import numpy as np, likeset as ls
space = ls.RKHS(lambda x, y: np.exp(-0.5 * ((x - y.T) / 0.2) ** 2), bound=2.0, domain=np.linspace(0, 1, 10))
seq = ls.ConfidenceSequence(ls.Gaussian(0.5), space)
seq.update(space.domain[3], 0.5)
low, high = seq.set.interval(space.domain)
assert (low < high).all()
"""
    done = python(EVERYTHING_OPTIONAL, program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_line_says_what_to_install(missing):
    done = python([missing], "from likeset.__main__ import main; main()", "--version")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert missing in line and 'pip install "likeset[cli]"' in line


def test_warmup_needs_no_command_line_packages():
    """Small images, which are warmed up when they are built, need not have them."""
    run = "from likeset.__main__ import main; main()"
    done = python(["typer", "rich"], run, "warmup", "--family", "cauchy")
    assert (
        (done.returncode, done.stdout) == (2, "") and "bernoulli" in done.stderr and len(done.stderr.splitlines()) == 1
    )
    done = python(["typer", "rich"], run, "warmup", "--family", "laplace")
    assert (done.returncode, done.stderr) == (0, "") and "kernels compiled in" in done.stdout


@pytest.mark.parametrize("command", ["compare", "theory", "reproduce"])
def test_commands_that_draw_say_what_to_install_before_they_work(command, tmp_path):
    out = tmp_path / "out"
    done = python(["matplotlib"], "from likeset.__main__ import main; main()", command, "--out", str(out))
    assert done.returncode == 2, done.stderr
    assert 'pip install "likeset[plots]"' in " ".join(done.stderr.split())
    assert not out.exists()


@pytest.mark.parametrize(
    ("missing", "program", "extra"),
    [
        ("matplotlib", "ls.plots", "plots"),
        ("sklearn", "ls.environments.paper_1d()", "kernels"),
        ("sklearn", "ls.load(path)", "kernels"),
    ],
)
def test_what_needs_an_extra_raises_a_typed_error(missing, program, extra, tmp_path):
    if "load" in program:
        from sklearn.gaussian_process.kernels import RBF

        path = tmp_path / "functions.likeset"
        ls.ConfidenceSequence(ls.Gaussian(0.5), ls.RKHS(RBF(0.2), 2.0, domain=[0.0, 0.5, 1.0])).save(path)
        program = f"ls.load({str(path)!r})"
    check = f"""
import likeset as ls
try:
    {program}
except ls.MissingPackageError as error:
    print(error.extra, isinstance(error, ls.LikesetError) and isinstance(error, ImportError), error)
"""
    done = python([missing], check)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{extra} True") and f"likeset[{extra}]" in done.stdout


def test_other_missing_modules_are_not_ours_to_explain():
    with pytest.raises(ModuleNotFoundError) as raised, optional_packages():
        import a_module_that_nobody_has  # noqa: F401
    assert not isinstance(raised.value, MissingPackageError)


def packages_of(requirements):
    return {re.split(r"[<>=\[]", text)[0] for text in requirements}


@pytest.mark.skipif(not PYPROJECT.exists(), reason="not run from the sources")
def test_what_is_imported_is_declared():
    """Every import of the package is of a core dependency, or of a package whose extra is known and declared."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = project["optional-dependencies"]
    core = packages_of(project["dependencies"])
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            imported |= {name.partition(".")[0] for name in names}
    foreign = imported - set(sys.stdlib_module_names) - {"likeset"}
    assert {INSTALLED_AS.get(name, name) for name in foreign - set(EXTRA_OF)} == core
    for name, extra in EXTRA_OF.items():
        assert INSTALLED_AS.get(name, name) in packages_of(extras[extra])
    assert set(EXTRA_OF.values()) == set(re.search(r"\[(.*)\]", extras["all"][0])[1].split(","))
    assert "likeset[all,bench,docs]" in extras["test"]  # make installs everything
