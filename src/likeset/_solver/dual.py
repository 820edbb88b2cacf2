r"""Window mixtures through weighted joint sets: for terms without derivatives, and for sets without a ball.

For any probability vector r over the windows, log sum_k pi_k e^{M_k} >= sum_k r_k M_k - KL(r | pi), so that

    C  in  C_r = { theta : sum_b w_b [gain_b + phi_b(x_b'theta)] <= level + KL(r | pi),  |theta| <= bound },
    w_b = sum_{k: b in W_k} r_k,

a *joint set with weights*, which the other kernels solve exactly. Every r gives an outer bound h(r), whatever made us
choose it, and by minimax the smallest one is the maximum over C itself. At the maximiser theta of C_r, moving r towards

    r*_k  proportional to  pi_k exp M_k(theta)

lowers h (its derivative along log r* - log r is -lam sum_k (r*_k - r_k) (log r*_k - log r_k) < 0), so a step along
r^(1-t) r*^t with a search for t does. r = r* means that theta lies on the boundary of C, and the bound is attained. In
words: weights chosen in hindsight, paid for by a Kullback-Leibler divergence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from likeset._solver.evaluate import log_sum_exp, reweighted, term_values
from likeset._solver.problem import Kernel, LevelSet, MixtureSet, Solution, with_column, with_zero
from likeset._solver.voice_sums import group_pulls, voice_exponents
from likeset._typing import EPS, Array

MAX_STEPS = 40
HALVINGS = 12
_FAR = 1e8  # times the length of the centre
SILENT = 1e-12  # voices below this are dropped: their covariates need not be looked at

Prepare = Callable[[LevelSet], Kernel]


@dataclass(frozen=True)
class Prepared(Kernel):
    """A window mixture that answers directions through its weighted joint sets."""

    status: str
    centre: Array
    target: MixtureSet
    prepare: Prepare

    @property
    def padded(self) -> Prepared:
        """The same with a flat coordinate: covariates that are zero there."""
        X = with_column(self.target.X)
        return replace(self, centre=with_zero(self.centre), target=replace(self.target, X=X))

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        values, points, upper = np.empty(len(A)), np.empty(A.shape), np.empty(len(A))
        for i, a in enumerate(A):
            points[i], upper[i] = self._solve_one(a, tolerance)
            values[i] = a @ points[i]
        return Solution(values, points, np.maximum(upper, values))

    def _solve_one(self, a: Array, tolerance: float) -> tuple[Array, float]:
        """A point of C and an outer bound for one direction.

        As long as the search along r^(1-t) r*^t lowers the bound it is followed. Where h has a kink (absolute values:
        several maximisers over C_r, of which we see one) it does not. From then on steps t = 1/2, 1/3, 1/4, ... are
        taken whether they lower the bound or not, as in mirror descent, and the mean of the maximisers comes close to
        the maximiser over C, which is none of them.
        """
        start = self.centre
        voices = _shares(self.target)
        theta, ceiling = self._weighted(voices, a)
        point, upper = start, ceiling
        mean, step, blind = theta, 1.0, 0
        for _ in range(MAX_STEPS):
            upper = min(upper, ceiling)
            for candidate in (theta, mean) if blind else (theta,):
                inner = self._pulled_inside(candidate)
                point = inner if a @ inner > a @ point else point
            if upper - a @ point <= tolerance * max(abs(upper - float(a @ start)), 64 * EPS * abs(upper)):
                break
            towards = voices_at(self.target, mean if blind else theta)
            if not blind:
                for _ in range(HALVINGS):
                    trial = _between(voices, towards, step)
                    attempt = self._weighted(trial, a)
                    if attempt[1] < upper:
                        break
                    step *= 0.5
                else:
                    blind, mean = 1, theta
                    continue
                voices, (theta, ceiling), step = trial, attempt, min(1.0, 2.0 * step)
            else:
                blind += 1
                voices = _between(voices, towards, 1.0 / blind)
                theta, ceiling = self._weighted(voices, a)
                mean = mean + (theta - mean) / blind
        return point, upper

    def _weighted(self, voices: Array, a: Array) -> tuple[Array, float]:
        """Maximiser and certified maximum of a'theta over C_r."""
        found = self.prepare(weighted_set(self.target, voices))
        if found.status == "empty":
            # C lies in C_r; a C_r that is empty to rounding adds nothing to what the centre says.
            return self.centre, float(a @ self.centre)
        solution = found.solve(a[None])
        theta = solution.points[0]
        if not np.isfinite(theta).all():  # nowhere: where C_r is endless, voices are chosen by what they say far out
            theta = self.centre + _FAR * (1.0 + float(np.linalg.norm(self.centre))) / float(np.linalg.norm(a)) * a
        return theta, float(solution.upper[0])

    def _pulled_inside(self, theta: Array) -> Array:
        """The last point of C on the way from the centre to theta."""
        if not np.isfinite(theta).all():
            return self.centre
        low, high = 0.0, 1.0
        if log_average(self.target, theta) <= self.target.level:
            return theta
        for _ in range(50):
            middle = 0.5 * (low + high)
            if log_average(self.target, self.centre + middle * (theta - self.centre)) <= self.target.level:
                low = middle
            else:
                high = middle
        return self.centre + low * (theta - self.centre)


def prepare(target: MixtureSet, prepare_joint: Prepare) -> Prepared:
    """A point of C, or a certificate that there is none: some C_r is empty.

    The distance of C_r from being empty, min_theta sum_k r_k M_k(theta) - KL(r | pi), is raised by the same moves as h.
    """
    voices = _shares(target)
    best, lowest, step = np.zeros(target.X.shape[1]), np.inf, 1.0
    for _ in range(MAX_STEPS):
        found = prepare_joint(weighted_set(target, voices))
        if found.status == "empty":
            return Prepared("empty", best, target, prepare_joint)
        value = log_average(target, found.centre)
        if value < lowest:
            best, lowest = found.centre, value
        if lowest < target.level - 0.1 or step < 1e-3:
            break
        step *= 0.8
        voices = _between(voices, voices_at(target, found.centre), step)
    return Prepared("regular" if lowest < target.level else "point", best, target, prepare_joint)


def _shares(target: MixtureSet) -> Array:
    """The shares, in proportion: with what numerators earned in them they may be too large for a number."""
    log_shares = target.voices.log_shares
    return np.asarray(np.exp(log_shares - log_shares.max()))


def weighted_set(target: MixtureSet, voices: Array) -> LevelSet:
    """C_r, without the covariates that carry no weight."""
    voices = np.where(voices > SILENT, voices, 0.0)
    voices = voices / voices.sum()
    windows = target.voices
    weights = group_pulls(windows, voices, len(target.X))
    loud = voices > 0.0
    parts = voices[loud] * (np.log(voices[loud]) - windows.log_shares[loud])
    divergence = float(np.sum(parts))
    used = weights > 0.0
    level = target.level + divergence - float(weights[used] @ target.gains[used])
    sizes = float(np.abs(parts).sum() + np.abs(weights[used] * target.gains[used]).sum())
    level += 64 * EPS * (abs(target.level) + sizes)
    return LevelSet(target.X[used], reweighted(target.terms, weights, used), level, target.bound)


def exponents_at(target: MixtureSet, theta: Array) -> Array:
    """log pi_k + M_k(theta)."""
    return voice_exponents(target.voices, target.gains + term_values(target.terms, target.X @ theta))


def voices_at(target: MixtureSet, theta: Array) -> Array:
    """r_k, proportional to pi_k exp M_k(theta); far out, where some M_k overflow, these have all to say, by pi_k.

    Any r gives an outer bound: what is chosen among voices too large for a number is a matter of steps, not of proof.
    """
    exponents = exponents_at(target, theta)
    endless = exponents == np.inf
    if endless.any():
        exponents = np.where(endless, target.voices.log_shares, -np.inf)
    voices = np.exp(exponents - exponents.max())  # huge ones leave no digits to a sum in the exponent
    return np.asarray(voices / voices.sum())


def log_average(target: MixtureSet, theta: Array) -> float:
    """log sum_k pi_k exp M_k(theta)."""
    return float(log_sum_exp(exponents_at(target, theta)))


def _between(voices: Array, towards: Array, step: float) -> Array:
    """r^(1 - t) r*^t, normalised."""
    with np.errstate(divide="ignore"):
        logs = (1.0 - step) * np.log(np.maximum(voices, 1e-30)) + step * np.log(np.maximum(towards, 1e-30))
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
