"""Typed errors travel between processes: a worker's error arrives, whatever value it carries."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likeset as ls
from likeset import checks, errors  # noqa: F401 (checks defines one more error)


def all_errors():
    found, todo = [], [errors.LikesetError]
    while todo:
        cls = todo.pop()
        found.append(cls)
        todo += [c for c in cls.__subclasses__() if c.__module__.startswith("likeset")]
    return found


def instance(cls):
    """An error of this class, by the signature of its constructor."""
    if cls is errors.RestatedRowError:
        return cls("user", 4, "u7", {"y": 1}, {"y": 2})
    if issubclass(cls, errors.RowError):
        return cls("age", 7, np.arange(3.0), "is wrong", "pass something else")
    if issubclass(cls, errors.StudyMismatchError):
        return cls("a study", "a path", {"alpha": (0.05, 0.1)})
    if issubclass(cls, errors.InvalidArgumentError):
        return cls("x[3]", np.arange(3.0), "is wrong", "pass something else")
    if issubclass(cls, errors.EmptySetError):
        return cls(0.05)
    if issubclass(cls, errors.JournalMismatchError):
        return cls("a path", {"alpha": (0.05, 0.1)})
    if issubclass(cls, errors.MissingPackageError):
        return cls("matplotlib", "plots")
    if cls.__name__ == "OutputError":
        return cls(Path("a folder"), "no space left")
    return cls("what went wrong")


class Unreadable:
    """Can be pickled, but raises when read."""

    def __reduce__(self):
        return (int, ("not a number",))


class Speechless:
    def __repr__(self):
        raise RuntimeError

    def __reduce__(self):
        raise RuntimeError


@pytest.mark.parametrize("cls", all_errors(), ids=lambda c: c.__name__)
def test_every_error_survives_pickling_and_copying(cls):
    error = instance(cls)
    error.add_note("a note")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is cls
        assert str(twin) == str(error)
        assert twin.__notes__ == ["a note"]
        assert twin.__dict__.keys() == error.__dict__.keys()
        for name, value in error.__dict__.items():
            np.testing.assert_array_equal(getattr(twin, name), value)


def test_the_walk_finds_the_errors_there_are():
    names = {cls.__name__ for cls in all_errors()}
    assert names >= {
        "ShapeError",
        "ObservationError",
        "PieceError",
        "EmptySetError",
        "FileFormatError",
        "ContractError",
    }


@pytest.mark.parametrize("value", [lambda x: x, Unreadable(), Speechless(), (i for i in range(3))], ids=type)
def test_a_value_that_cannot_be_sent_arrives_as_its_repr(value):
    error = ls.InvalidArgumentError("kernel", value, "is no kernel", "pass k(X, Y)")
    twin = pickle.loads(pickle.dumps(error))
    assert isinstance(twin.value, str)
    assert twin.value in str(twin)
    assert (twin.argument, twin.problem, twin.remedy) == ("kernel", "is no kernel", "pass k(X, Y)")


POOL = """
import multiprocessing, sys
import likeset as ls
def work(i):
    if i == 0:
        raise ls.EmptySetError(0.05)
    ls.Gaussian(sigma=(lambda: i))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for i in range(2):
            try:
                pool.apply(work, (i,))
            except ls.errors.LikesetError as error:
                print(type(error).__name__)
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_pool_gets_the_error_and_does_not_wait_for_ever(tmp_path):
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["EmptySetError", "InvalidArgumentError"]


@pytest.mark.parametrize(
    ("family", "y", "shown"),
    [(ls.Poisson(), -1, "y[0] = -1.0 is not a count"), (ls.Weibull(1.0), (-2.0, 1), "y[0] = (-2.0, 1.0) is not")],
    ids=["a count", "a lifetime"],
)
def test_a_refused_observation_is_shown_as_a_plain_number(family, y, shown):
    seq = ls.ConfidenceSequence(family, ls.Linear(dim=1, bound=1.0))
    with pytest.raises(ls.ObservationError) as caught:
        seq.update([[1.0]], [y])
    assert str(caught.value).startswith(shown)


@pytest.mark.parametrize(
    ("control", "said"),
    [("Z", "is not a level of any factor"), ("A", "as {factor: level}")],
    ids=["unknown", "ambiguous"],
)
def test_a_control_that_cannot_be_found_is_told_what_to_pass(control, said):
    factors = {"page": ["A", "B"], "button": ["A", "C"]}
    with pytest.raises(ls.InvalidArgumentError) as caught:
        ls.Study("signup", factors=factors, outcome={"clicks": ls.Poisson()}, control=control, store=None)
    assert said in str(caught.value)
    assert "page: A, B; button: A, C" in str(caught.value)
