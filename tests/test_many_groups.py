"""Gaussian noise and rows that are all different: a look reads them once, for all scales and levels."""

import numpy as np
import pytest

import likeset as ls
from likeset import _solver
from likeset.evidence.at_all_levels import AtAllLevels

SETTINGS = {
    "unknown scale": (lambda: ls.Gaussian(ls.Unknown()), lambda: ls.Linear(dim=3)),
    "unknown scale, bound": (lambda: ls.Gaussian(ls.Unknown(0.1, 10.0)), lambda: ls.Linear(dim=3, bound=5.0)),
    "known scale": (lambda: ls.Gaussian(1.0), lambda: ls.Linear(dim=3)),
    "known scale, bound": (lambda: ls.Gaussian(1.0), lambda: ls.Linear(dim=3, bound=5.0)),
}


def sequence(setting, rows=600, shift=0.0):
    family, space = SETTINGS[setting]
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(rows), rng.normal(size=(rows, 2))])
    seq = ls.ConfidenceSequence(family(), space())
    seq.expect(purpose="inference", contrasts=np.eye(3))
    seq.update(x, x @ [0.3 + shift, 0.2, 0.0] + rng.normal(size=rows))
    return seq


@pytest.mark.parametrize("setting", SETTINGS)
def test_few_groups_say_what_many_say_and_never_more(setting, monkeypatch):
    seq = sequence(setting)
    x = np.vstack([np.eye(3), np.random.default_rng(0).normal(size=(1, 3))])
    few = seq.set
    monkeypatch.setattr("likeset.evidence.few_groups.MANY", 10**9)
    monkeypatch.setattr("likeset.evidence.evidence.MANY", 10**9)
    seq._set = None
    many = seq.set
    assert many is not few
    width = many.upper(x) - many.lower(x)
    np.testing.assert_allclose(few.upper(x), many.upper(x), rtol=0, atol=1e-6 * width.max())
    np.testing.assert_allclose(few.lower(x), many.lower(x), rtol=0, atol=1e-6 * width.max())
    inside = many.support(x)
    assert (few.upper(x) >= inside.values - 1e-12).all()
    found, known = (s.evidence(x[:1], equal=0.0).log_e_value for s in (few, many))
    np.testing.assert_allclose(found, known, rtol=1e-3, atol=1e-3)
    if "unknown" in setting:
        np.testing.assert_allclose(few.nuisance_interval(), many.nuisance_interval(), rtol=1e-6)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_kernel_sees_the_rows_again(setting, monkeypatch):
    rows = []
    original = _solver.prepare_reduced
    monkeypatch.setattr(
        _solver, "prepare_reduced", lambda target: rows.append(len(getattr(target, "X", ()))) or original(target)
    )
    s = sequence(setting).set
    s.interval(np.eye(3))
    s.evidence(np.eye(3)[0], equal=0.0)
    assert len(rows) > 5 and sum(n >= 300 for n in rows) <= 1 and s.n_observations == 600


def test_many_groups_around_a_large_mean_keep_what_the_data_say():
    """Few rows are rounded in the unit of the residuals, not of the mean."""
    near, far = (sequence("unknown scale", shift=shift).set for shift in (0.0, 1e6))
    x = np.eye(3)
    assert (far.lower(x) <= [1e6 + 0.3, 0.2, 0.0]).all() and (far.upper(x) >= [1e6 + 0.3, 0.2, 0.0]).all()
    assert (far.upper(x) - far.lower(x) > 0.9 * (near.upper(x) - near.lower(x))).all()


def test_what_is_kept_for_all_levels_belongs_to_its_parts():
    kept, made = AtAllLevels(), []
    parts = (np.zeros(2), "voices")

    def make():
        made.append(1)
        return len(made)

    assert kept.once(parts, "a", make) == kept.once(parts, "a", make) == 1
    assert kept.once(parts, "b", make) == 2
    assert kept.once((np.zeros(2), "voices"), "a", make) == 3 and kept.once(parts, "a", make) == 4


def test_what_another_thread_asks_meanwhile_with_other_parts_is_not_the_answer():
    """As between two contrasts of one set, which have voices of their own."""
    kept, others = AtAllLevels(), (np.zeros(2),)

    class Interrupted(tuple):
        """Parts in the middle of whose comparison a thread with others gets its turn."""

        def __iter__(self):
            assert kept.once(others, "few", lambda: "of the others") == "of the others"
            return super().__iter__()

    parts = (np.ones(2),)
    assert kept.once(parts, "few", lambda: "of these") == "of these"
    assert kept.once(Interrupted(parts), "few", lambda: "never") == "of these"
