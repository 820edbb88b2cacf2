"""Studies with a formula announce their coefficients, for every family that has voices for them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset.study import engine
from likeset.voices.contrasts import Contrasts

FACTORS = {"a": float, "b": float}
THETA = np.array([0.3, 0.6, -0.4])
ANNOUNCED = [
    ls.Poisson(), ls.Bernoulli(), ls.Binomial(4), ls.Geometric(), ls.Exponential(), ls.Weibull(1.5), ls.LogWeibull(1.5),
]  # fmt: skip
OTHERS = [ls.Weibull(ls.Unknown()), ls.NegativeBinomial(0.5), ls.Gamma(2.0), ls.Laplace(1.0)]


def begun(family, formula="~ a + b", factors=None, **options):
    settings = {"outcome": {"y": family}, "store": None} | options
    return ls.Study("s", formula=formula, factors=FACTORS if factors is None else factors, **settings)


def rows_of(family, n, seed=0, theta=THETA):
    """Columns of n rows; lifetimes are censored at random."""
    rng = np.random.default_rng([16, seed])
    family = ls.Weibull(1.5) if repr(family) == "Weibull(shape=Unknown())" else family
    x = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    y = family.sample(x @ theta, rng)
    columns = {"a": x[:, 1], "b": x[:, 2], "y": y}
    if family.observation_shape and not isinstance(family, ls.LogWeibull):
        until = rng.exponential(3.0, size=n)
        columns |= {"y": np.minimum(y[:, 0], until), "event": (y[:, 0] <= until) * 1.0}
    elif family.observation_shape:
        columns |= {"y": y[:, 0], "event": y[:, 1]}
    return columns


def told(family, n, seed=0, theta=THETA, **options):
    if family.observation_shape:
        options = {"event": "event"} | options
    study = begun(family, **options)
    study.tell(rows_of(family, n, seed, theta))
    return study


def voices_of(study):
    return study._fresh().sequence.voices


def widths(study):
    return np.array([row["z_upper"] - row["z_lower"] for row in study.rows()])


# -- who has them ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ANNOUNCED, ids=repr)
def test_coefficients_are_announced(family):
    study = told(family, 60)
    voices = voices_of(study)
    assert isinstance(voices, Contrasts) and voices.simultaneous and voices.share == engine.SHARE_OF_COEFFICIENTS
    np.testing.assert_array_equal(voices.A, np.eye(3))
    assert (study._fresh().sequence._running.directions.units > 0.0).all()
    assert all(np.isfinite([row["lower"], row["upper"], row["e_value"]]).all() for row in study.rows())


@pytest.mark.parametrize("family", OTHERS, ids=repr)
def test_others_have_the_voices_that_they_had(family):
    study = told(family, 30)
    assert not isinstance(voices_of(study), Contrasts)
    assert len(study.rows()) == 3


def test_more_coefficients_than_a_table_has_time_for():
    names = [f"x{j}" for j in range(engine.MOST_COEFFICIENTS)]
    many = begun(ls.Poisson(), "~ " + " + ".join(names), {name: float for name in names})
    few = begun(ls.Poisson(), "~ " + " + ".join(names[1:]), {name: float for name in names[1:]})
    assert not isinstance(voices_of(many), Contrasts) and isinstance(voices_of(few), Contrasts)


# -- what it brings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [ls.Poisson(), ls.Bernoulli(), ls.Weibull(1.5)], ids=repr)
def test_intervals_are_narrower_than_without(family, monkeypatch):
    ratio = {}
    for n in (100, 1000):
        now = widths(told(family, n))
        with monkeypatch.context() as patched:
            patched.setattr(engine, "has_tilts", lambda family, space: False)
            before = widths(told(family, n))
        ratio[n] = float(np.mean(now / before))
    assert ratio[100] < 1.02 and ratio[1000] < 0.97


def test_a_wild_beginning_does_not_spoil_the_voices(monkeypatch):
    """Without a bound the first estimates were off by e^10, and rows told of then decided all tilts for ever."""
    rng = np.random.default_rng([16, 5, 300, 1])
    x = rng.normal(size=(300, 4))
    theta = np.concatenate([[0.2], 0.3 * rng.normal(size=4)])
    names = ["p", "q", "r", "s"]
    columns = dict(zip(names, x.T, strict=True)) | {"y": rng.poisson(np.exp(theta[0] + x @ theta[1:]))}
    study = begun(ls.Poisson(), "~ p + q + r + s", {name: float for name in names})
    study.tell(columns)
    directions = study._fresh().sequence._running.directions
    basis = study._fresh().sequence._running.basis
    believed = basis.coordinates(np.column_stack([np.ones(300), x]))[0] @ directions.believed
    assert np.abs(believed - (theta[0] + x @ theta[1:])).max() < 3.0
    with monkeypatch.context() as patched:
        patched.setattr(engine, "has_tilts", lambda family, space: False)
        plain = begun(ls.Poisson(), "~ p + q + r + s", {name: float for name in names})
    plain.tell(columns)
    assert np.mean(widths(study) / widths(plain)) < 0.98


@pytest.mark.parametrize("family", [ls.Poisson(), ls.Bernoulli(), ls.Exponential()], ids=repr)
def test_verdict_interval_and_evidence_agree(family):
    """At many times and effects, small ones included: decided means that zero is outside and e is above 1/alpha."""
    seen = set()
    for seed, size in enumerate((0.0, 0.15, 0.3, 0.8)):
        study = begun(family, **({"event": "event"} if family.observation_shape else {}))
        columns = rows_of(family, 240, seed, size * np.array([1.0, 1.0, -1.0]))
        for start in range(0, 240, 60):
            study.tell({name: column[start : start + 60] for name, column in columns.items()})
            for row in study.rows():
                decided = row["verdict"] in ("positive", "negative")
                seen.add(row["verdict"])
                assert decided == (row["lower"] > 0.0 or row["upper"] < 0.0)
                assert decided == (row["e_value"] > 20.0) == (row["p_value"] < 0.05)
    assert seen == {"positive", "negative", "not yet"}


# -- rows with more than their covariates --------------------------------------------------------------------------


def test_exposure_and_offsets_of_counts():
    rng = np.random.default_rng(3)
    columns = rows_of(ls.Poisson(), 150)
    hours = rng.uniform(0.5, 4.0, size=150)
    columns["y"] = rng.poisson(hours * np.exp(0.3 + 0.6 * columns["a"] - 0.4 * columns["b"]))
    one = begun(ls.Poisson(), exposure="hours")
    two = begun(ls.Poisson(), offset="log_hours")
    one.tell(columns | {"hours": hours})
    two.tell(columns | {"log_hours": np.log(hours)})
    for left, right in zip(one.rows(), two.rows(), strict=True):
        np.testing.assert_allclose([left["lower"], left["upper"]], [right["lower"], right["upper"]], rtol=1e-5)


def test_offsets_of_proportions_improve_ends_too(monkeypatch):
    """The search went by one curve for all rows, and ends were those of the other voices at their share."""
    rng = np.random.default_rng(4)
    columns = rows_of(ls.Bernoulli(), 600) | {"known": rng.choice([-0.5, 0.0, 0.7], size=600)}
    z = 0.3 + 0.6 * columns["a"] - 0.4 * columns["b"] + columns["known"]
    columns["y"] = (rng.random(600) < 1.0 / (1.0 + np.exp(-z))) * 1.0
    study = begun(ls.Bernoulli(), offset="known")
    study.tell(columns)
    with monkeypatch.context() as patched:
        patched.setattr(engine, "has_tilts", lambda family, space: False)
        plain = begun(ls.Bernoulli(), offset="known")
    plain.tell(columns)
    assert np.mean(widths(study) / widths(plain)) < 0.98
    s = study.set
    low, high = s.interval(np.eye(3))
    points = s.centre + 0.6 * (high - low) * np.random.default_rng(0).uniform(-1.0, 1.0, size=(2000, 3))
    inside = points[s.contains(points)]
    assert len(inside) > 50 and (inside >= low).all() and (inside <= high).all()


def test_levels_in_a_formula_keep_few_rows():
    """Rows of one covariate with about the same tilts are one: what is kept hardly grows with the rows."""
    rng = np.random.default_rng(5)
    ward = rng.choice(["A", "B", "C"], size=3000)
    study = begun(ls.Bernoulli(), "~ C(ward)", {"ward": ["A", "B", "C"]})
    study.tell({"ward": ward, "y": (rng.random(3000) < np.where(ward == "B", 0.6, 0.3)) * 1.0})
    directions = study._fresh().sequence._running.directions
    assert directions.kept < 300
    assert directions.parts[: directions.kept, 0].sum() > 2900


# -- stored studies -------------------------------------------------------------------------------------------------


def test_studies_begun_before_go_on_with_their_voices(tmp_path, monkeypatch):
    columns = rows_of(ls.Poisson(), 90)
    part = [{name: column[start : start + 45] for name, column in columns.items()} for start in (0, 45)]
    with monkeypatch.context() as patched:  # as they were begun before
        patched.setattr(engine, "has_tilts", lambda family, space: False)
        memory = begun(ls.Poisson())
        with begun(ls.Poisson(), store=tmp_path / "before.db").store:
            begun(ls.Poisson(), store=tmp_path / "before.db").tell(part[0])
    again = begun(ls.Poisson(), store=tmp_path / "before.db")
    again.tell(part[1])
    memory.tell(part[0])
    memory.tell(part[1])
    assert not isinstance(voices_of(again), Contrasts)
    assert again.rows() == memory.rows()
    assert isinstance(voices_of(begun(ls.Poisson())), Contrasts)


@pytest.mark.parametrize("every", [10, 10**9])
def test_stored_studies_continue_bit_for_bit(tmp_path, monkeypatch, every):
    """From a kept state, or from the rows; with covariates that come again."""
    monkeypatch.setattr(engine, "STATE_EVERY", every)
    monkeypatch.setattr(engine, "STATE_BYTES_PER_ROW", 10**9)
    columns = rows_of(ls.Bernoulli(), 90)
    columns["a"] = np.round(columns["a"])
    columns["b"] = np.round(columns["b"])
    memory = begun(ls.Bernoulli())
    for start in range(0, 90, 30):
        part = {name: column[start : start + 30] for name, column in columns.items()}
        memory.tell(part)
        study = begun(ls.Bernoulli(), store=tmp_path / "kept.db")
        study.tell(part)
        for name, array in memory._fresh().sequence._running.directions.state().items():
            np.testing.assert_array_equal(study._fresh().sequence._running.directions.state()[name], array)
        assert study.rows() == memory.rows()
        study.store.close()


# -- coverage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [ls.Poisson(), pytest.param(ls.Bernoulli(), marks=pytest.mark.slow)], ids=repr)
def test_adaptive_coverage_with_optional_stopping(family):
    """Rows are chosen towards the coefficient that is nearest to missing, and a run ends when one is decided wrongly
    or all are decided. Of a study at 10 % no more runs miss than that, with false-alarm probability 1e-6."""
    runs, looks, alpha, missed = 40, 6, 0.1, 0
    for number in range(runs):
        rng = np.random.default_rng([161, number])
        theta = np.array([0.0, 0.7, 0.0]) if number % 2 else 0.6 * rng.normal(size=3)
        study = begun(family, alpha=alpha)
        direction = np.zeros(2)
        for _ in range(looks):
            x = np.column_stack([np.ones(20), rng.normal(size=(20, 2)) + direction])
            study.tell({"a": x[:, 1], "b": x[:, 2], "y": family.sample(x @ theta, rng)})
            table = study.rows()
            low, high = (np.array([row[end] for row in table]) for end in ("z_lower", "z_upper"))
            if ((theta < low) | (theta > high)).any():
                missed += 1
                break
            if all(row["verdict"] != "not yet" for row in table):
                break
            room = np.minimum(theta - low, high - theta)[1:]
            direction = 0.8 * np.eye(2)[int(np.argmin(np.where(np.isfinite(room), room, np.inf)))]
    assert missed <= binom.ppf(1 - 1e-6, runs, alpha)
