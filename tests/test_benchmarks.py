"""The benchmark beside CVXPY compares the same set, unprepared, on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import support
from benchmarks.common import fresh

import likeset as ls


@pytest.mark.parametrize("name", ["Gaussian", "Poisson", "Laplace"])
def test_both_sides_solve_the_same_set(name: str) -> None:
    row = support.measure(name, 3, "regular", repeats=1, rival_repeats=1)
    assert row["inward"] < 1e-8
    assert row["untrusted"] == 0 and row["difference"] < 1e-5


def test_another_set_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    merged = support.merge
    monkeypatch.setattr(support, "merge", lambda *args: merged(args[0], args[1] + 1.0, *args[2:]))
    with pytest.raises(RuntimeError, match="attains more than our bound"):
        support.measure("Gaussian", 3, "regular", repeats=1, rival_repeats=1)


def test_a_fresh_snapshot_has_nothing_prepared() -> None:
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 1.0), voices=None)
    sequence.update(np.eye(2), [0.3, -0.2])
    asked = fresh(sequence)
    asked.upper(np.eye(2))
    again = fresh(sequence)
    assert "kernel" in asked._evidence.__dict__
    assert not {"kernel", "_target", "known_gains"} & set(again._evidence.__dict__)
