"""Mixtures of quadratics: few rows for many, and a ball for sets without one, change no answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import likeset as ls
from likeset._solver import dual, prepare, prepare_joint
from likeset._solver.problem import CurveTerms, MixtureSet, VoiceTable
from likeset._solver.quadratic import mixture
from likeset._solver.quadratic.mixture import Enclosed


def covariates(kind, n, d, rng):
    X = rng.normal(size=(n, d))
    if kind == "clustered":
        X = X[rng.integers(3 * d, size=n)] + 1e-9 * rng.normal(size=(n, d))
    elif kind == "sorted":
        X = np.sort(X, axis=0)
    elif kind == "far":
        X[:, 0] = 1.0
    return X


def regression(kind, n=200, d=3, bound=np.inf, patient=False):
    rng = np.random.default_rng(n + d)
    X = covariates(kind, n, d, rng)
    y = X @ np.linspace(-1.0, 1.0, d) + rng.normal(size=n) + (1e6 if kind == "far" else 0.0)
    voices = ls.Patience() if patient else None if bound == np.inf else "auto"
    sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(d, bound), voices=voices, alarm=True)
    sequence.expect(np.eye(d), purpose="inference", contrasts=np.eye(d))
    sequence.update(X, y)
    return sequence.set


def by_weighted_joint_sets(monkeypatch, s):
    monkeypatch.setattr(mixture, "prepare", lambda target, otherwise: dual.prepare(target, prepare_joint))
    return replace(s._evidence).kernel


@pytest.mark.parametrize("kind", ["plain", "clustered", "sorted", "far"])
def test_bounds_are_those_of_weighted_joint_sets(kind, monkeypatch):
    s = regression(kind)
    d = s.space.dim
    A = np.vstack([np.eye(d), -np.eye(d), np.ones((1, d))])
    assert isinstance(s._kernel, Enclosed)
    found, evidence = s._kernel.solve(A), s._evidence
    other = by_weighted_joint_sets(monkeypatch, s).solve(A)
    width = other.upper - A @ s._kernel.centre
    # Outcomes near a million leave the slower way without an answer: it says so, and that all is allowed.
    certified = np.isfinite(other.upper)
    assert certified.all() or kind == "far"
    assert (found.upper >= other.values)[certified].all()
    assert (found.upper <= other.upper + 1e-5 * width).all()
    assert (found.upper - found.values <= 1e-6 * (found.upper - A @ s._kernel.centre)).all()
    # what attains them is judged by all rows
    ratios = evidence.log_ratio(found.points @ evidence.groups.coordinates.T)
    assert (ratios <= evidence.threshold + (1e-5 if kind == "far" else 1e-6)).all()
    assert (ratios >= evidence.threshold - 1e-3).all()


def test_many_rows_are_solved_as_few():
    s = regression("plain", n=3000, d=4)
    assert isinstance(s._kernel, Enclosed)
    assert len(s._kernel.inner.body.X) <= 4 * (4 + 4 * 4)
    patient = regression("plain", n=3000, d=4, patient=True)
    assert isinstance(patient._kernel, Enclosed)
    assert len(patient._kernel.inner.body.X) <= 10 * 4 * 4  # at most so many of each class


def test_sets_in_a_ball_have_the_same_bounds_from_few_rows(monkeypatch):
    free, held = regression("plain"), regression("plain", bound=1e5)
    A = np.eye(3)
    np.testing.assert_allclose(held.upper(A), free.upper(A), atol=0.02)  # the bound shapes the forecasts, too
    found, other = held._kernel.solve(A), by_weighted_joint_sets(monkeypatch, held).solve(A)
    assert (found.upper >= other.values).all() and (found.upper <= other.upper + 1e-6).all()


def test_a_set_without_a_ball_is_open_where_nothing_was_seen():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(40, 2)), np.zeros(40)])
    a, o = np.ones(40), X[:, 0] + rng.normal(size=40)
    voices = VoiceTable(np.array([0, 40, 60]), np.r_[np.arange(40), np.arange(20)], np.log([0.5, 0.5]))

    def kernel(columns):
        terms = CurveTerms(ls.Gaussian.curve, a, np.zeros(40), o)
        return prepare(MixtureSet(np.ascontiguousarray(X[:, :columns]), terms, -0.5 * np.ones(40), voices, 3.0, np.inf))

    plane, space = kernel(2), kernel(3)
    assert isinstance(plane, Enclosed) and not isinstance(space, Enclosed)
    A = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = plane.solve(A, outside=np.array([0.0, 0.5, 0.0]))
    assert np.isfinite(found.upper[[0, 2]]).all() and found.upper[1] == np.inf
    assert found.points.shape == (3, 3)
    assert space.solve(np.array([[1.0, 0.0, 0.5]])).upper[0] == np.inf
    np.testing.assert_allclose(space.solve(np.array([[1.0, 0.0, 0.0]])).upper, found.upper[:1], rtol=1e-5)


@pytest.mark.parametrize("bound", [2.0, np.inf])
def test_many_windows_have_rows_of_their_own(bound, monkeypatch):
    """Nearly every row is heard by other windows: the bounds are those of all rows, from few."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 4))
    sequence = ls.ConfidenceSequence(
        ls.Gaussian(0.5), ls.Linear(4, bound), voices=ls.Patience().beside(ls.OpeningWindows())
    )
    sequence.update(X, X @ [0.5, -0.5, 0.2, 0.0] + 0.5 * rng.standard_normal(400))
    s, A = sequence.set, np.vstack([np.eye(4), -np.eye(4)])
    found = s._kernel.solve(A)
    inner = s._kernel.inner if bound == np.inf else s._kernel
    monkeypatch.setattr(mixture, "_voice_by_voice", lambda target, theta: None)
    whole = replace(s._evidence).kernel
    body = whole.inner.body if bound == np.inf else whole.body
    assert len(inner.body.X) < 0.5 * len(body.X)
    every = whole.solve(A)
    # Each is solved for on a level of its own, raised by what its own sums may have lost to rounding.
    rounding = 1e-11
    assert (found.upper >= every.values - rounding).all() and (every.upper >= found.values - rounding).all()
    np.testing.assert_allclose(found.upper, every.upper, atol=1e-6)
