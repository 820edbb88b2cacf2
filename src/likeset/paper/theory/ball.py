r"""How large a set is: Bregman balls around the truth (Theorem 3) and around the estimate (Proposition 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import error_level, one_row, positive, positive_integer, real_array, seed_number
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.paper.theory.geometry import Curvature, LogPartition, check_fit, not_negative, penalised_estimate
from likeset.sets import LikelihoodSet


def bregman_radius(
    gain: Any, regret: Any, *, curvature: Curvature, nu: float, bound: float, alpha: float, delta: float
) -> Array:
    r"""Theorem 3: with probability 1 - delta, at all times t at once, every theta in C_t satisfies

        D_Z(theta, theta*) <= (4L/mu) ( log(1/delta) + nu B^2 / 2 + Gamma_t ) + 2 log(1/alpha) + 2 R_t.

    Symbols: Gamma_t ``gain`` (:func:`~likeset.theory.bregman_information_gain`), R_t ``regret``
    (:func:`~likeset.theory.online_regret`), L and mu in ``curvature``, B ``bound``; arrays over t are fine.

    This is the theorem with the levels as in its proof (the display swaps alpha and delta) and nu B^2/2 for nu B^2. The
    proof drops (nu/2)|theta - theta*|^2 with the wrong sign; to keep it and use
    (nu/2)|theta - theta*|^2 + nu theta*'(theta - theta*) = (nu/2)(|theta|^2 - |theta*|^2) repairs it and saves half.

    >>> import likeset as ls
    >>> c = Curvature.of(ls.Gaussian(1.0), bound=1.0, x=[[1.0]])
    >>> float(bregman_radius(0.5, 0.2, curvature=c, nu=1.0, bound=1.0, alpha=0.1, delta=0.1).round(3))
    18.216
    """
    gain, regret = _along_time(gain, regret)
    ratio, extra = _ratio(curvature), positive("nu", nu) * positive("bound", bound) ** 2 / 2
    inside = np.log(1 / error_level("delta", delta)) + extra + gain
    outside = np.log(1 / error_level("alpha", alpha)) + regret
    return 4 * ratio * inside + 2 * outside


def type_two_error_bound(
    divergence: Any, gain: Any, regret: Any, *, curvature: Curvature, nu: float, bound: float, alpha: float
) -> Array:
    r"""Theorem 3 read the other way: how likely a wrong parameter at that distance is still in the set.

    delta is the type II error of the test "is theta the truth?" with level alpha. A theta with
    D_Z(theta, theta*) = ``divergence`` is in C_t only if the radius at delta reaches that far, so the error is at most

        delta = exp( - [ (mu/4L)( divergence - 2 log(1/alpha) - 2 R_t ) - nu B^2/2 - Gamma_t ] ),   at most 1.

    >>> import likeset as ls
    >>> c = Curvature.of(ls.Gaussian(1.0), bound=1.0, x=[[1.0]])
    >>> far = bregman_radius(0.5, 0.2, curvature=c, nu=1.0, bound=1.0, alpha=0.1, delta=0.05)
    >>> float(type_two_error_bound(far, 0.5, 0.2, curvature=c, nu=1.0, bound=1.0, alpha=0.1).round(4))
    0.05
    """
    gain, regret = _along_time(gain, regret)
    distance = not_negative("divergence", divergence)
    extra = positive("nu", nu) * positive("bound", bound) ** 2 / 2
    spent = 2 * (np.log(1 / error_level("alpha", alpha)) + regret)
    check_fit(distance, np.asarray(spent + gain), "regret")
    return np.exp(np.minimum(0.0, extra + gain - (distance - spent) / (4 * _ratio(curvature))))


def bregman_radius_as_printed(
    gain: Any, regret: Any, *, curvature: Curvature, nu: float, bound: float, alpha: float, delta: float
) -> Array:
    r"""Theorem 3's display:  (4L/mu) ( log(1/alpha) + nu B^2 + Gamma_t ) + 2 log(1/delta) + 2 R_t.

    Not what the proof shows when alpha and delta differ: for small delta it is too small.

    >>> import likeset as ls
    >>> c = Curvature.of(ls.Gaussian(1.0), bound=1.0, x=[[1.0]])
    >>> float(bregman_radius_as_printed(0.5, 0.2, curvature=c, nu=1.0, bound=1.0, alpha=0.1, delta=0.1).round(3))
    20.216
    """
    gain, regret = _along_time(gain, regret)
    inside = np.log(1 / error_level("alpha", alpha)) + positive("nu", nu) * positive("bound", bound) ** 2
    outside = np.log(1 / error_level("delta", delta)) + regret
    return 4 * _ratio(curvature) * (inside + gain) + 2 * outside


def deviation_bound(gain: Any, *, nu: float, bound: float, delta: float) -> Array:
    r"""Proposition 1: with probability 1 - delta, at all t, D_Z(theta*, theta~_t) <= log(1/delta) + nu B^2/2 + Gamma_t.

    For any weights: the paper renormalises p^w, which is not the law of y; that
    A(z + w u) <= (1 - w) A(z) + w A(z + u) is what makes the mixture a supermartingale.

    >>> float(deviation_bound(0.5, nu=1.0, bound=1.0, delta=0.1).round(4))
    3.3026
    """
    extra = positive("nu", nu) * positive("bound", bound) ** 2 / 2
    return np.log(1 / error_level("delta", delta)) + extra + not_negative("gain", gain)


def deviation(family: Family, x: Any, y: Any, theta: Any, weights: Any = None, *, nu: float) -> float:
    """D_Z(theta, theta~_t): how far the truth ``theta`` is from the penalised estimate.

    >>> import likeset as ls
    >>> deviation(ls.Gaussian(1.0), [[1.0], [1.0]], [0.9, 1.1], [1.0], nu=2.0)      # (2 + 2)/2 * (1 - 1/2)^2
    0.5
    """
    estimate = penalised_estimate(family, x, y, weights, nu=nu)
    return float(LogPartition(family, x, weights, nu=nu).divergence(theta, estimate))


def largest_divergence(
    s: LikelihoodSet, Z: LogPartition, theta: Any, *, starts: int = 16, steps: int = 20, seed: int = 0
) -> float:
    r"""max over the set C of D_Z(., theta), found by ascent: the realised size that Theorem 3 bounds.

    D_Z is convex, so theta_{k+1} = argmax over C of D_Z'(theta_k)'theta never goes down; each step is one exact support
    query. The best of ``starts`` random directions is a lower bound of the maximum (a convex function may have several
    local ones), and in two dimensions in practice the maximum itself.

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(dim=1, bound=2.0), windows=None)
    >>> Z = LogPartition(ls.Gaussian(1.0), [[1.0]], nu=1.0)
    >>> round(largest_divergence(seq.set, Z, [0.5]), 6)      # nothing seen: theta = -2 is farthest, (1 + 1)/2 * 2.5^2
    6.25
    """
    if not isinstance(s, LikelihoodSet):
        raise InvalidArgumentError("s", s, "is not a likelihood-ratio set", "pass e.g. ConfidenceSequence(...).set")
    if not isinstance(Z, LogPartition):
        raise InvalidArgumentError("Z", Z, "is not a LogPartition", "pass LogPartition(family, x, nu=...)")
    truth = one_row("theta", theta, Z.x.shape[1])
    rng = np.random.default_rng(seed_number("seed", seed))
    directions = rng.normal(size=(positive_integer("starts", starts, 10**5), len(truth)))
    best = np.full(len(directions), -1.0)
    slope = Z.gradient(truth)
    for _ in range(positive_integer("steps", steps)):
        points = s.support(directions).maximisers
        values = Z.divergence(points, truth)
        if not (values > best + 1e-9 * (1 + np.abs(best))).any():
            break
        best = np.maximum(best, values)
        directions = Z.gradient(points) - slope
    return float(best.max())


def _along_time(gain: Any, regret: Any) -> tuple[Array, Array]:
    gains, regrets = not_negative("gain", gain), real_array("regret", regret)
    check_fit(gains, regrets, "regret")
    return gains, regrets


def _ratio(curvature: Curvature) -> float:
    if not isinstance(curvature, Curvature):
        raise InvalidArgumentError("curvature", curvature, "is not a Curvature", "pass Curvature.of(family, bound, x)")
    return curvature.L / curvature.mu
