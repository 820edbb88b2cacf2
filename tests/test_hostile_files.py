"""Files made to hurt: wrong arrays, wrong settings, bombs. A typed error or the right answers; never a crash.

Whatever may crash the interpreter or eat memory is loaded by ``hostile_worker.py``, in a process with one gigabyte.
"""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import likeset as ls
from make_files import cases, observed, own_pieces

HERE = Path(__file__).parent
OLD = HERE / "data" / "0.1.0"
TRUTH = ("ledger/x", "ledger/y", "ledger/weights", "ledger/log_q", "ledger/classes", "ledger/given")
SOME = ("linear-Poisson-Mixture", "rkhs-aggregate-weights")
EVERY = tuple(cases())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Path of a file of each kind, as this release writes it."""
    folder, made = tmp_path_factory.mktemp("new"), {}

    def path_of(name):
        if name not in made:
            seq, arms, z = cases()[name]()
            x, y, *_ = observed(name, arms, z, seq.family)
            if len(x):
                seq.update(x, y)
            seq.save(folder / name)
            made[name] = folder / name
        return made[name]

    return path_of


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def loads(jobs, gigabytes=1.0, timeout=600.0):
    """What became of every (kind, path); fails if the worker dies or a file takes long."""
    lines = "".join(json.dumps([kind, str(path)]) + "\n" for kind, path in jobs)
    done = subprocess.run(
        [sys.executable, str(HERE / "hostile_worker.py"), str(gigabytes)],
        input=lines, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (jobs[len(said)], done.returncode, done.stderr[-2000:])
    assert len(said) == len(jobs)
    slow = [s for s in said if s["seconds"] > 30.0]
    assert not slow, slow
    return said


def array_mutations(array):
    """Wrong versions of an array, as .npy files."""
    n = len(array) if array.ndim else 0
    lying = npy(array).replace(f"({n},".encode(), b"(9999999999,", 1)
    filled = {name: np.full_like(array, v) for name, v in (("nan", np.nan), ("inf", np.inf), ("minus inf", -np.inf))}
    changed = {
        "first": array[:1], "shorter": array[:-1], "longer": np.concatenate([array, array, array]),
        "flat": array.ravel(),
        "deeper": array[None], "scalar": np.float64(1.0), "empty": np.zeros(0), "no rows": array[:0],
        "wide": np.zeros((0, 10**9)), "transposed": np.ascontiguousarray(array.T), "negative": -array - 1.0,
        "huge": np.full_like(array, 1e300), "large": array * 1e30, "zero": np.zeros_like(array),
        "reversed": array[::-1],
        "narrow": array[..., :-1], "square": np.zeros((300, 300)),
        "int": array.astype(np.int64, copy=False) if np.isfinite(array).all() else array.astype(np.float32),
        "float32": array.astype(np.float32), "big endian": array.astype(">f8"), "complex": array.astype(complex),
        "columns first": np.asfortranarray(array), "structured": np.zeros(3, dtype=[("a", "f8")]),
    } | filled  # fmt: skip
    with np.errstate(all="ignore"):
        made = {name: npy(np.asarray(a)) for name, a in changed.items()}
    return made | {"lying": lying, "cut": npy(array)[:-5], "no array": b"hello", "nothing": b""}


def check_arrays(names, path_of, folder):
    jobs, kinds = [], []
    for kind in names:
        members = members_of(path_of(kind))
        jobs.append((kind, path_of(kind)))
        kinds.append(None)
        for member in (name for name in members if name.endswith(".npy")):
            for how, content in array_mutations(np.load(io.BytesIO(members[member]))).items():
                path = folder / f"{len(jobs)}"
                jobs.append((kind, written(path, members | {member: content})))
                kinds.append((kind, member, how))
    right = None
    for mutation, said in zip(kinds, loads(jobs, timeout=3000.0), strict=True):
        if mutation is None:
            right = said["answers"]
        elif mutation[1].removesuffix(".npy") in TRUTH:
            assert "error" in said or "answers" in said or "refused" in said  # another truth, or none
        else:
            assert "error" in said or said["answers"] == pytest.approx(right, rel=1e-6, abs=1e-6), (mutation, said)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [SOME[0], pytest.param(SOME[1], marks=pytest.mark.slow)])
def test_wrong_arrays(name, files, tmp_path):
    check_arrays([name], files, tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["rkhs-poisson-ftrl"])
def test_wrong_arrays_in_files_of_version_two(name, tmp_path):
    check_arrays([name], lambda kind: OLD / f"{kind}.likeset", tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EVERY)
def test_wrong_arrays_in_every_file(name, files, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "old").mkdir()
    check_arrays([name], files, tmp_path / "new")
    if (OLD / f"{name}.likeset").exists():  # a kind that the first release knew
        check_arrays([name], lambda kind: OLD / f"{kind}.likeset", tmp_path / "old")


@pytest.mark.parametrize("name", ["linear-Poisson-Aggregate", "linear-Gaussian-Mixture", "linear-weights-exact"])
def test_a_state_that_does_not_fit_is_made_again_bit_for_bit(name, files, tmp_path):
    """A wrong forecaster or weigher costs nothing: the rows are observed again."""
    members = members_of(files(name))
    right = ls.load(files(name))
    x, y = right.ledger.x.rows[:3].copy(), right.ledger.y.rows[:3].copy()
    right.update(x, y)
    states = [n for n in members if n.startswith(("forecaster", "weigher"))]
    assert states
    for member in states:
        wrong = ls.load(written(tmp_path / "wrong", members | {member: npy(np.zeros((1, 2, 3)))}))
        wrong.update(x, y)
        np.testing.assert_array_equal(wrong.ledger.log_q.rows, right.ledger.log_q.rows)
        np.testing.assert_array_equal(wrong.ledger.weights.rows, right.ledger.weights.rows)


@pytest.mark.parametrize("family", [ls.Gaussian(sigma=ls.Unknown()), ls.Laplace(scale=ls.Unknown()), ls.Gaussian(0.5)])
def test_states_that_hold_evidence_are_made_again_if_they_were_changed(family, tmp_path):
    """An unknown scale's numerator lives in the forecaster, the alarm's in the alarm: no lie about them is believed."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    seq = ls.ConfidenceSequence(family, ls.Linear(2))
    seq.update(x, x @ [0.5, -0.2] + 0.5 * rng.normal(size=30))
    seq.save(tmp_path / "right")
    right, members = seq.set.interval(np.eye(2)), members_of(tmp_path / "right")
    header = json.loads(members["header.json"])
    header.pop("seal")
    unsealed = json.dumps(header).encode()
    for member in [n for n in members if n.startswith(("forecaster", "alarm"))]:
        changed = members | {member: npy(0.5 * np.load(io.BytesIO(members[member])))}
        for head in (members["header.json"], unsealed):
            wrong = ls.load(written(tmp_path / "wrong", changed | {"header.json": head}))
            np.testing.assert_allclose(wrong.set.interval(np.eye(2)), right, rtol=1e-9, err_msg=member)


@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith("rkhs")])
def test_another_basis_makes_forecaster_and_weigher_again(name, tmp_path):
    """As on a machine where the kernel matrix is a little different: states of other coordinates are not believed."""
    said = json.loads((OLD / "answers.json").read_text())[name]
    members = members_of(OLD / f"{name}.likeset")
    coordinates = np.load(io.BytesIO(members["ledger/merged.coordinates.npy"]))
    other = members | {"ledger/merged.coordinates.npy": npy(coordinates + 1e-3)}
    for state in (n for n in members if n.startswith(("forecaster", "weigher"))):
        other[state] = npy(np.load(io.BytesIO(members[state])) * 0.5)
    seq = ls.load(written(tmp_path / "other", other), **own_pieces(name))
    np.testing.assert_array_equal(seq.ledger.log_q.rows, said["saved"]["log_q"])
    seq.update(said["continued"]["x"], said["continued"]["y"])
    new = seq.ledger.log_q.rows[-len(said["continued"]["y"]) :]
    np.testing.assert_allclose(new, said["continued"]["log_q"], rtol=1e-4, atol=1e-4)


def places(value, path=()):
    """Paths of everything in a JSON document."""
    yield path
    if isinstance(value, (dict, list)):
        keys = value if isinstance(value, dict) else range(min(len(value), 2))
        for key in keys:
            yield from places(value[key], (*path, key))


def replaced(value, path, new):
    value = json.loads(json.dumps(value))
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


DEEP = json.loads("[" * 400 + "]" * 400)
WRONG = (KeyError, None, True, False, "x", "inf", "", -1, 0, 0.5, 3, 1e308, 10**9, 10**30, [], {}, [[]], [1e9], DEEP)
WRONG += ({"type": "Aggregate", "members": []}, {"own": "Mine"}, {"type": ["Poisson"], "settings": None})


@pytest.mark.parametrize(
    "name",
    ["linear-Binomial-Mixture", "linear-own-state", *(pytest.param(n, marks=pytest.mark.slow) for n in EVERY)],
)
def test_wrong_settings(name, files, tmp_path):
    members = members_of(files(name))
    header = json.loads(members["header.json"])
    jobs, changes = [], []
    for path in places(header):
        for wrong in WRONG if path else ():
            changed = json.dumps(replaced(header, path, wrong))
            jobs.append((name, written(tmp_path / str(len(jobs)), members | {"header.json": changed.encode()})))
            changes.append((path, wrong))
    for (path, wrong), said in zip(changes, loads(jobs, timeout=1200.0), strict=True):
        if path[0] in ("alpha", "n_observations") and isinstance(wrong, (bool, str, dict, list)):
            assert said.get("error") == "FileFormatError", (path, wrong, said)
        if path[0] in ("family", "space", "predictor", "weighting") and isinstance(wrong, bool):
            assert said.get("error") == "FileFormatError", (path, wrong, said)


def flips(path, folder, count, seed):
    content, rng, made = path.read_bytes(), np.random.default_rng(seed), []
    for i in range(count):
        damaged = bytearray(content)
        for position in rng.integers(len(content), size=rng.integers(1, 4)):
            damaged[position] ^= 1 << int(rng.integers(8))
        made.append(folder / f"{seed}-{i}")
        made[-1].write_bytes(damaged)
    return made


def check_flips(name, path, folder, count, seed):
    jobs = [(name, path), *((name, p) for p in flips(path, folder, count, seed))]
    right, *others = loads(jobs, timeout=3000.0)
    for said in others:
        assert "error" in said or said["answers"] == pytest.approx(right["answers"], rel=1e-6, abs=1e-6), said


@pytest.mark.parametrize("name", ["linear-Poisson-Mixture", "rkhs-windows"])
def test_random_flips(name, files, tmp_path):
    check_flips(name, files(name), tmp_path, 250, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_twenty_thousand_random_flips(seed, files, tmp_path):
    name = SOME[seed % len(SOME)]
    path = files(name) if seed % 2 else OLD / f"{name}.likeset"
    check_flips(name, path, tmp_path, 1000, 100 + seed)


def test_truncations(files, tmp_path):
    content = files("linear-Poisson-Mixture").read_bytes()
    jobs = []
    for cut in np.linspace(0, len(content) - 1, 150).astype(int):
        path = tmp_path / str(cut)
        path.write_bytes(content[:cut])
        jobs.append(("linear-Poisson-Mixture", path))
    assert {said.get("error") for said in loads(jobs)} == {"FileFormatError"}


def long_npy(shape, fill=b"\0"):
    """An array file of a shape that is never in memory: preamble and the bytes, in pieces."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    yield stream.getvalue()
    left = int(np.prod(shape)) * 8
    while left:
        step = min(left, 1 << 24)
        yield fill * step
        left -= step


def bomb(path, members, big):
    """A file with members of very many zeros, which compress to nothing."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            if name not in big:
                archive.writestr(name, content)
        for name, pieces in big.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as out:
                for piece in pieces:
                    out.write(piece)
    return path


def with_header(members, **changes):
    return members | {"header.json": json.dumps(json.loads(members["header.json"]) | changes).encode()}


@pytest.mark.slow
def test_bombs(files, tmp_path):
    """Small files that would take very much memory, minutes or the stack."""
    name = "linear-Poisson-Mixture"
    members = members_of(files(name))
    n = 9_000_000
    many = with_header(members, n_observations=n)
    rows = {f"ledger/{a}.npy": (n, 3) if a == "x" else (n,) for a in ("x", "y", "weights", "log_q")}
    zeros = {member: long_npy(shape) for member, shape in rows.items()}
    millions = {member: long_npy((3_000_000, *shape[1:])) for member, shape in rows.items()}
    deep = {"type": "FTRL", "settings": {"penalty": 1.0}}
    for _ in range(400):
        deep = {"type": "Aggregate", "members": [deep]}
    wide = {"type": "Aggregate", "members": [{"type": "FTRL", "settings": {"penalty": 1.0}}] * 5000}
    precisions = {"type": "Mixture", "settings": {"precisions": [1.0] * 1_000_000}}
    empty = members_of(files("linear-empty"))
    binomial = {"type": "Binomial", "settings": {"trials": 10**8}}
    made = {
        "rows": bomb(tmp_path / "rows", many, zeros),
        "time": bomb(tmp_path / "time", with_header(members, n_observations=3_000_000), millions),
        "state": bomb(tmp_path / "state", members, {"forecaster/means.npy": long_npy((5, 8_000_000))}),
        "header": bomb(tmp_path / "header", members, {"header.json": [b" " * (1 << 24)] * 8}),
        "members": written(tmp_path / "members", members | {f"forecaster/{i}.npy": b"" for i in range(30_000)}),
        "deep": written(tmp_path / "deep", with_header(members, predictor=deep)),
        "brackets": written(tmp_path / "brackets", members | {"header.json": b"[" * 3_000_000}),
        "wide": written(tmp_path / "wide", with_header(members, predictor=wide)),
        "precisions": written(tmp_path / "precisions", with_header(members, predictor=precisions)),
        "dim": written(
            tmp_path / "dim", with_header(empty, space={"type": "Linear", "settings": {"dim": 10**9, "bound": 1.0}})
        ),
        "digits": written(tmp_path / "digits", members | {"header.json": b'{"alpha": ' + b"9" * 100_000 + b"}"}),
    }
    for size in (made["rows"], made["state"]):
        assert size.stat().st_size < 4_000_000  # and hundreds of megabytes of contents
    said = dict(zip(made, loads([(name, path) for path in made.values()], gigabytes=0.9), strict=True))
    for which, outcome in said.items():
        if which != "precisions":  # a million of them in three dimensions: large, but it can be done
            assert outcome.get("error") == "FileFormatError", (which, outcome)
        assert outcome["seconds"] < 25.0, (which, outcome)
    trials = loads([(name, written(tmp_path / "trials", with_header(empty, family=binomial)))], gigabytes=0.2)
    assert trials[0].get("error") == "FileFormatError" and trials[0]["seconds"] < 5.0, trials[0]


def test_many_distinct_points_of_a_function_space_cannot_be_smuggled_in(files, tmp_path):
    """A basis of thousands of vectors takes minutes; a file that explains it holds their coordinates."""
    members = members_of(files("rkhs-no-domain"))
    n = 4000
    rng = np.random.default_rng(0)
    arrays = {"x": rng.uniform(size=(n, 1)), "y": np.zeros(n), "weights": np.ones(n), "log_q": np.zeros(n)}
    many = with_header(members, n_observations=n) | {f"ledger/{k}.npy": npy(v) for k, v in arrays.items()}
    assert loads([("rkhs-no-domain", written(tmp_path / "many", many))])[0]["error"] == "FileFormatError"


def test_large_files_of_our_own_can_be_read_however_well_they_compress(tmp_path, monkeypatch):
    from likeset.persistence import archive

    monkeypatch.setattr(archive, "FREE_BYTES", 20_000)
    seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(20, 1.0), predictor=ls.Fixed(np.zeros(20)), windows=None)
    seq.update(np.ones((500, 20)), np.zeros(500))
    seq.save(tmp_path / "a")
    assert ls.load(tmp_path / "a").n_observations == 500
    with zipfile.ZipFile(tmp_path / "a") as opened:
        sizes = {m.filename: (m.compress_type, m.file_size) for m in opened.infolist()}
    assert sizes["ledger/x.npy"] == (zipfile.ZIP_STORED, 80_128)


def test_settings_that_could_not_be_read_again_are_refused_when_saving(tmp_path):
    deep = ls.FTRL()
    for _ in range(40):
        deep = ls.Aggregate(deep)
    for predictor in (deep, ls.Aggregate(*[ls.FTRL()] * 1200)):
        with pytest.raises(ls.InvalidArgumentError, match=r"nested|members"):
            ls.ConfidenceSequence(ls.Poisson(), ls.Linear(1, 1.0), predictor=predictor).save(tmp_path / "a")
    assert not list(tmp_path.iterdir())
