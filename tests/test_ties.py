"""Outcomes that are tied, where the scale of the noise is unknown: a theta may explain them all without any noise.

A continuous law gives ties probability zero, and real data are full of them: zero revenue, rounded prices. Scale zero
is one of the scales that are possible, so what fits without noise stays in the set, whatever the numerator says.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import _solver
from likeset._solver.concave import ConcaveSearch

FAMILIES = {"gaussian": ls.Gaussian, "laplace": ls.Laplace}


def study_of(y, family):
    study = ls.Study("ties", factors={"v": ["a", "b"]}, outcome={"y": family}, control="a", store=None)
    study.tell({"v": ["ab"[i % 2] for i in range(len(y))], "y": list(map(float, y))})
    return study


@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize("count", [10, 400])
def test_zeros_are_no_alarm_and_leave_one_point(family, count):
    """Every scale above zero is refuted by so many zeros, none of them is the model."""
    study = study_of(np.zeros(count), family(ls.Unknown()))
    s = study.set
    assert not s.is_empty and not study.alarm()["rings"]
    for row in study.rows():
        assert abs(row["lower"]) < 1e-60 and abs(row["upper"]) < 1e-60
        assert row["verdict"] in ("control", "not yet") and (row["e_value"] is None or row["e_value"] <= 1.0)
    assert s.nuisance_interval() == (0.0, 0.0)
    assert s.contains([0.0, 0.0]) and not s.contains([1e-3, 0.0]) and s.log_ratio([0.0, 0.0]) < np.log(20)
    assert s.evidence([1.0, 0.0], above=0.1).e_value[0] > 1e3
    assert s.fits_without_noise and "its scale may be zero" in study.summary()


@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize("voices", ["auto", None])
def test_zeros_in_one_ratio_and_in_several(family, voices):
    x = np.random.default_rng(0).normal(size=(60, 2))
    x[:, 1] = 1.0
    seq = ls.ConfidenceSequence(family(ls.Unknown()), ls.Linear(dim=2), voices=voices)
    seq.update(x, np.zeros(60))
    s = seq.set
    low, high = s.interval(np.eye(2))
    assert not s.is_empty and (low <= 0.0).all() and (high >= 0.0).all() and (high - low < 1e-60).all()
    assert s.nuisance_interval() == (0.0, 0.0) and s.contains([0.0, 0.0]) and not s.contains([0.0, 1e-3])
    e = s.evidence(np.eye(2), equal=0.0)
    assert (e.e_value <= 1.0).all() and not np.isnan(e.e_value).any()
    seq.update(x[0], 1.0)  # noise after all, and very long tails
    assert not np.isnan(seq.set.log_ratio([0.0, 0.0]))


@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize("voices", ["auto", None])
def test_zeros_of_a_function_leave_it_open_elsewhere(family, voices):
    """Points close together stick out of the basis by a little, which is charged for and not dropped."""
    seq = ls.ConfidenceSequence(family(ls.Unknown()), ls.RKHS(RBF(0.2), bound=3.0, dim=1), voices=voices)
    seq.update(np.sort(np.random.default_rng(0).uniform(size=(60, 1)), axis=0), np.zeros(60))
    low, high = seq.set.interval([[0.5], [3.0]])
    assert -1e-4 < low[0] < 0.0 < high[0] < 1e-4 and low[1] < -2.9 and high[1] > 2.9


@pytest.mark.parametrize("family", FAMILIES.values())
def test_a_scale_with_a_lower_end_cannot_explain_ties(family):
    study = study_of(np.zeros(60), family(ls.Unknown(lo=0.1)))
    assert study.set.is_empty and study.alarm()["rings"] and not study.set.fits_without_noise


@pytest.mark.parametrize("family", FAMILIES.values())
def test_only_what_is_explained_more_than_once_fits_without_noise(family):
    def fits(x, y, unknown):
        seq = ls.ConfidenceSequence(family(unknown), ls.Linear(dim=2))
        seq.update(x, y)
        return seq.set.fits_without_noise

    x = np.column_stack([np.ones(12), np.arange(12.0)])
    line, noise = x @ [1.0, 0.25], np.random.default_rng(0).normal(size=12)
    assert fits(x, line, ls.Unknown()) and not fits(x, line, ls.Unknown(lo=1e-3)) and not fits(x, line, 1.0)
    assert not fits(x[:2], line[:2], ls.Unknown())  # two rows, two coefficients: nothing to be seen
    assert not fits(x, line + 1e-3 * noise, ls.Unknown()) and not fits(
        np.repeat(x, 2, 0), np.tile(noise, 2), ls.Unknown()
    )


@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize(
    ("count", "unit", "spread"), [(400, 1.0, 0.0), (400, 1.0, 1e-12), (100, 1e-9, 0.0), (100, 1e9, 1e-12)]
)
def test_equal_outcomes_have_tight_bounds(family, count, unit, spread):
    y = 3.0 * unit * (1.0 + spread * np.random.default_rng(1).normal(size=count))
    study = study_of(y, family(ls.Unknown()))
    for row in study.rows():
        assert 3.0 * unit * (1 - 1e-2) < row["lower"] < 3.0 * unit < row["upper"] < 3.0 * unit * (1 + 1e-2)
        assert row["e_value"] is None or row["e_value"] <= 1.0
    low, high = study.set.nuisance_interval()
    assert low <= spread * 3.0 * unit and high < 0.1 * unit


def test_a_look_at_equal_outcomes_takes_no_more_kernels_than_one_at_others(monkeypatch):
    prepared = []
    original = _solver.prepare_reduced
    monkeypatch.setattr(_solver, "prepare_reduced", lambda target: prepared.append(1) or original(target))
    counts = []
    for y in (3.0 + np.random.default_rng(0).normal(size=100), np.full(100, 3.0), np.zeros(100)):
        study = study_of(y, ls.Gaussian(ls.Unknown()))
        prepared.clear()
        study.rows()
        counts.append(len(prepared))
    assert 0 < counts[1] < 1.5 * counts[0] and counts[2] < 0.1 * counts[0]


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-9, 1e-12])
def test_little_noise_around_a_large_mean_keeps_the_truth(spread):
    """Scales that are far below what the numerator can tell are bounded by concavity, outward."""
    kept = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        seq = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(dim=2), alpha=0.1)
        x = np.column_stack([np.ones(60), rng.normal(size=60)])
        theta = np.array([5.0, -2.0])
        seq.update(x, x @ theta + spread * rng.normal(size=60))
        low, high = seq.set.interval(np.eye(2))
        least, most = seq.set.nuisance_interval()
        kept += bool((low <= theta).all() and (theta <= high).all() and least <= spread <= most)
    assert kept >= 5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize(("unit", "spread"), [(1e-95, 1.0), (1e-70, 1.0), (1e-30, 1.0), (1e-30, 0.0), (1e60, 0.0)])
def test_units_do_not_matter(family, unit, spread):
    """Of an electron's mass in kilograms the model was called refuted: what the numerator gains by small scales
    underflowed, and kernels were not asked about scales below 1e-65."""
    rng, theta = np.random.default_rng(1), np.array([3.0, -1.5]) * unit
    x = np.column_stack([np.ones(40), rng.integers(0, 3, size=40)])
    y = x @ theta + spread * unit * (rng.normal(size=40) if family is ls.Gaussian else rng.laplace(size=40))
    y[np.abs(y) < 1e-99] = 0.0
    for voices in (None, "auto", ls.Patience(3), *(["contrasts"] if family is ls.Gaussian else [])):
        seq = ls.ConfidenceSequence(
            family(ls.Unknown()), ls.Linear(dim=2), voices="auto" if voices == "contrasts" else voices
        )
        if voices == "contrasts":
            seq.expect(purpose="inference", contrasts=np.eye(2))
        seq.update(x, y)
        s = seq.set
        assert not s.is_empty and s.contains(theta)
        low, high = s.interval(np.eye(2))
        assert (low <= theta).all() and (theta <= high).all()
        least, most = s.nuisance_interval()
        assert least <= spread * unit <= most
        assert (s.evidence(np.eye(2), equal=theta).e_value <= 20.0).all()
        if voices is None and spread == 1.0:
            assert (high - low < 4.0 * unit).all() and least > 0.3 * unit and most < 3.0 * unit


@pytest.mark.parametrize("family", FAMILIES.values())
def test_outcomes_whose_squares_are_lost_are_refused(family):
    seq = ls.ConfidenceSequence(family(ls.Unknown()), ls.Linear(dim=1))
    seq.update([[1.0]] * 2, [0.0, 1e-99])
    with pytest.raises(ls.ObservationError, match=r"y\[1\] = .* is not zero and below 1e-100"):
        seq.update([[1.0]] * 2, [1.0, -1e-101])
    assert seq.n_observations == 2


def test_one_outcome_that_differs_ends_the_silence():
    seq = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(dim=1), voices=None)
    seq.update(np.ones((30, 1)), np.zeros(30))
    assert seq.set.interval([1.0])[1][0] < 1e-60
    seq.update(np.ones((1, 1)), [1.0])
    low, high = seq.set.interval([1.0])
    assert -1.0 < low[0] < 0.0 < 1 / 31 < high[0] < 1.0 and seq.set.nuisance_interval()[0] > 0.0


def test_below_the_floor_lines_bound_a_concave_function():
    asked = []

    def f(p):
        asked.append(p)
        return (p * (1.0 - np.log(p)),) * 2  # concave, steep at zero, largest at one

    search = ConcaveSearch(0.0, 4.0, floor=1e-3)
    for p in (0.5, 2.0, 3.0):
        search.learn(p, *f(p))
    value, bound = search.run(f, 1e-8)
    assert abs(value - 1.0) < 1e-6 and value <= bound < value + 1e-6 and min(asked) >= 1e-3
    falling = ConcaveSearch(0.0, 4.0, floor=1e-3)
    g = lambda p: (1.0 - p,) * 2  # noqa: E731
    for p in (0.5, 2.0, 3.0):
        falling.learn(p, *g(p))
    assert falling.run(g, 1e-9)[1] >= 1.0 - 1e-12 and min(p for p, _, _ in falling.points) >= 1e-3
