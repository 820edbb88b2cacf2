"""Save and load: bit for bit, for every piece, and clear words about files that cannot be read."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import likeset as ls
from likeset import checks

HERE = Path(__file__).parent
GOLDEN = HERE / "data" / "poisson-v1.likeset"


def stream(family, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, 3)) + 0.5
    return X, family.sample(X @ [0.2, -0.1, 0.15], rng)


@pytest.mark.parametrize("weighting", checks.built_in_weightings(), ids=repr)
@pytest.mark.parametrize(
    ("family", "predictor"),
    [(f, p) for f in checks.built_in_families() for p in checks.built_in_predictors() if checks.applicable(p, f)],
    ids=lambda p: type(p).__name__,
)
def test_a_loaded_sequence_continues_bit_for_bit(family, predictor, weighting, tmp_path):
    if isinstance(predictor, ls.Fixed):
        predictor = ls.Fixed([0.1, 0.2, 0.3])
    X, y = stream(family, 30)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), 0.1, predictor, weighting)
    sequence.update(X[:12], y[:12])
    sequence.save(tmp_path / "a")
    loaded = ls.load(tmp_path / "a")
    assert repr(loaded) == repr(sequence)
    for s in (sequence, loaded):
        s.update(X[12:], y[12:])
    np.testing.assert_array_equal(sequence.ledger.log_q.rows, loaded.ledger.log_q.rows)
    np.testing.assert_array_equal(sequence.ledger.weights.rows, loaded.ledger.weights.rows)
    np.testing.assert_array_equal(sequence.ledger.gains, loaded.ledger.gains)


@pytest.mark.parametrize("family", [f for f in checks.built_in_families() if f.convex], ids=repr)
def test_bounds_after_loading_are_identical(family, tmp_path):
    X, y = stream(family, 20)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, np.inf if isinstance(family, ls.Gaussian) else 2.0))
    sequence.update(X, y)
    sequence.save(tmp_path / "a")
    np.testing.assert_array_equal(sequence.set.upper(X[:5]), ls.load(tmp_path / "a").set.upper(X[:5]))


def test_an_empty_sequence_can_be_saved(tmp_path):
    ls.ConfidenceSequence(ls.Laplace(1.0), ls.Linear(2, 1.0)).save(tmp_path / "a")
    loaded = ls.load(tmp_path / "a")
    loaded.update([1.0, 0.0], 0.3)
    assert loaded.n_observations == 1


class Remembering:
    """A user's own forecaster, without state()."""

    def __init__(self, family):
        self.family, self.total, self.n = family, 0.0, 0

    def forecast(self, phi):
        return ls.PlugIn(self.family, np.log((self.total + 1) / (self.n + 1)))

    def observe(self, phi, y):
        self.total += float(y)
        self.n += 1


def test_a_users_own_predictor_is_replayed(tmp_path):
    family = ls.Poisson()
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 2.0), predictor=Remembering(family))
    sequence.update(np.ones(5), [1, 2, 0, 4, 1])
    sequence.save(tmp_path / "a")
    with pytest.raises(ls.InvalidArgumentError, match="Remembering"):
        ls.load(tmp_path / "a")
    loaded = ls.load(tmp_path / "a", predictor=Remembering(family))
    assert loaded.forecaster.n == 5
    for s in (sequence, loaded):
        s.update(1.0, 2)
    np.testing.assert_array_equal(sequence.ledger.log_q.rows, loaded.ledger.log_q.rows)


def test_a_custom_family_is_passed_again(tmp_path):
    family = ls.CustomFamily(
        lambda y, z: np.abs(y - z) + 2 * np.log1p(np.exp(-np.abs(y - z))), support="real", convex=True, name="Logistic"
    )
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 2.0))
    sequence.update(np.ones(4), [0.1, 0.7, -0.2, 0.4])
    sequence.save(tmp_path / "a")
    loaded = ls.load(tmp_path / "a", family=family)
    assert loaded.set.upper(1.0) == sequence.set.upper(1.0)
    with pytest.raises(ls.InvalidArgumentError, match="not needed"):
        ls.load(tmp_path / "a", family=family, weighting=ls.Unweighted())


def saved(tmp_path):
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 2.0))
    sequence.update(*stream(ls.Poisson(), 20))
    path = tmp_path / "sequence.likeset"
    sequence.save(path)
    return path


def rewritten(path, change):
    """The same zip file with its members passed through ``change(name, bytes)``; None drops a member."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            new = change(name, content)
            if new is not None:
                archive.writestr(name, new)
    return path


def edit_header(**changes):
    def change(name, content):
        return json.dumps(json.loads(content) | changes).encode() if name == "header.json" else content

    return change


@pytest.mark.parametrize("keep", [0, 1, 100, 0.3, 0.9, 0.999])
def test_truncated_files(tmp_path, keep):
    path = saved(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: keep if isinstance(keep, int) else int(len(content) * keep)])
    with pytest.raises(ls.FileFormatError, match="damaged"):
        ls.load(path)


def test_flipped_bytes_never_load_silently(tmp_path):
    path = saved(tmp_path)
    content = bytearray(path.read_bytes())
    original = ls.load(path).ledger.log_q.rows
    rng = np.random.default_rng(0)
    for position in rng.integers(len(content), size=60):
        damaged = bytearray(content)
        damaged[position] ^= 0x5A
        path.write_bytes(damaged)
        try:
            loaded = ls.load(path)
        except (ls.FileFormatError, ls.InvalidArgumentError):
            continue
        np.testing.assert_array_equal(loaded.ledger.log_q.rows, original)  # a byte that carries no meaning


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit_header(version=99), "version 99"),
        (edit_header(format="other"), "not a saved likeset"),
        (edit_header(family={"type": "Tweedie", "settings": {}}), "Tweedie"),
        (edit_header(family={"type": "Gaussian", "settings": {"width": 1}}), "damaged"),
        (edit_header(n_observations=3), "damaged"),
        (edit_header(arrays=[]), "damaged"),
        (lambda n, c: b"{" if n == "header.json" else c, "damaged"),
        (lambda n, c: b"[]" if n == "header.json" else c, "not a saved likeset"),
        (lambda n, c: None if n == "ledger/log_q.npy" else c, "damaged"),
        (lambda n, c: c[:40] if n == "ledger/x.npy" else c, "damaged"),
    ],
)
def test_damaged_contents(tmp_path, change, message):
    path = rewritten(saved(tmp_path), change)
    with pytest.raises(ls.FileFormatError, match=message):
        ls.load(path)


def reshaped(name, change_array):
    def change(member, content):
        if member != name:
            return content
        buffer = io.BytesIO()
        np.save(buffer, change_array(np.load(io.BytesIO(content))))
        return buffer.getvalue()

    return change


@pytest.mark.parametrize(
    ("name", "change_array"),
    [
        ("ledger/log_q.npy", lambda a: a[:-1]),
        ("ledger/log_q.npy", lambda a: a * np.nan),
        ("ledger/weights.npy", lambda a: a * 2),
        ("ledger/x.npy", lambda a: a[:, :1]),
        ("ledger/x.npy", lambda a: a * 1e-300),
        ("ledger/y.npy", lambda a: a - 0.5),
    ],
)
def test_arrays_that_do_not_fit_together(tmp_path, name, change_array):
    path = rewritten(saved(tmp_path), reshaped(name, change_array))
    with pytest.raises(ls.FileFormatError, match="damaged"):
        ls.load(path)


def test_an_aggregate_with_a_users_own_member_is_replayed(tmp_path):
    family = ls.Poisson()
    make = lambda: ls.Aggregate(Remembering(family), ls.FTRL())  # noqa: E731
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 2.0), predictor=make())
    sequence.update(np.ones(6), [1, 2, 0, 4, 1, 0])
    sequence.save(tmp_path / "a")
    loaded = ls.load(tmp_path / "a", predictor=make())
    for s in (sequence, loaded):
        s.update(1.0, 2)
    np.testing.assert_allclose(sequence.ledger.log_q.rows, loaded.ledger.log_q.rows, rtol=1e-9)


def test_pickled_arrays_are_refused(tmp_path):
    def change(name, content):
        if name != "ledger/x.npy":
            return content
        buffer = io.BytesIO()
        np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        return buffer.getvalue()

    with pytest.raises(ls.FileFormatError):
        ls.load(rewritten(saved(tmp_path), change))


def test_paths_that_do_not_work(tmp_path):
    with pytest.raises(ls.InvalidArgumentError, match="does not exist"):
        ls.load(tmp_path / "nothing")
    with pytest.raises(ls.InvalidArgumentError, match="cannot be read"):
        ls.load(tmp_path)
    with pytest.raises(ls.InvalidArgumentError, match="cannot be written"):
        ls.ConfidenceSequence(ls.Poisson(), ls.Linear(1, 1.0)).save(tmp_path / "no" / "folder" / "a")
    for wrong in (None, 5):
        with pytest.raises(ls.InvalidArgumentError, match="path"):
            ls.load(wrong)
        with pytest.raises(ls.InvalidArgumentError, match="path"):
            ls.ConfidenceSequence(ls.Poisson(), ls.Linear(1, 1.0)).save(wrong)
    with pytest.raises(ls.InvalidArgumentError, match="cannot be written"):
        ls.ConfidenceSequence(ls.Poisson(), ls.Linear(1, 1.0)).save(tmp_path)
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(ls.FileFormatError):
        ls.load(text)


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch, failure):
    path = saved(tmp_path)
    before = path.read_bytes()

    def half(stream, *args, **kwargs):
        stream.write(b"half")
        raise failure

    monkeypatch.setattr("likeset.persistence.files.write_archive", half)
    expected = ls.InvalidArgumentError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected, match="disk full" if isinstance(failure, OSError) else None):
        ls.load(path).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_files_of_version_one_load_forever():
    """Written by the release that introduced the format; regenerate with ``python tests/test_persistence.py``."""
    sequence = ls.load(GOLDEN)
    assert sequence.n_observations == 20
    X, y = stream(ls.Poisson(), 20)
    np.testing.assert_array_equal(sequence.ledger.x.rows, X)
    np.testing.assert_array_equal(sequence.ledger.y.rows, y)
    fresh = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 2.0), 0.05, voices=None)
    fresh.update(X, y)
    np.testing.assert_allclose(sequence.set.upper(X[:4]), fresh.set.upper(X[:4]), rtol=1e-6)


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    golden = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 2.0), 0.05, voices=None)
    golden.update(*stream(ls.Poisson(), 20))
    golden.save(GOLDEN)


def test_a_state_of_five_priors_belongs_where_none_were_chosen(tmp_path):
    """Files without a seal, of earlier releases: the five priors of these are no others that somebody has chosen."""
    X, y = stream(ls.Gaussian(1.0), 12)
    five = np.array([1.0, 4.0, 16.0, 64.0, 256.0]) / 2.0**2
    contents = {}
    for name, predictor in (("chosen", ls.Mixture([1.0, 2.0])), ("five", ls.Mixture(five)), ("default", ls.Mixture())):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(3, 2.0), 0.1, predictor, alarm=False)
        sequence.update(X, y)
        sequence.save(tmp_path / name)
        with zipfile.ZipFile(tmp_path / name) as archive:
            contents[name] = {member: archive.read(member) for member in archive.namelist()}
    for name, priors in (("chosen", 2), ("default", 5)):
        members = {m: c for m, c in contents[name].items() if not m.startswith("forecaster/")}
        members |= {m: c for m, c in contents["five"].items() if m.startswith("forecaster/")}
        header = json.loads(members["header.json"]) | {"arrays": json.loads(contents["five"]["header.json"])["arrays"]}
        del header["seal"]
        with zipfile.ZipFile(tmp_path / "other", "w") as archive:
            for member, content in (members | {"header.json": json.dumps(header)}).items():
                archive.writestr(member, content)
        loaded = ls.load(tmp_path / "other")
        loaded.update(X[:1], y[:1])
        assert len(loaded.belief.shares) == priors
