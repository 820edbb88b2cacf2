r"""Several sums of the same terms, averaged in the exponent: the function behind a window mixture.

    Phi(theta) = log sum_k pi_k exp M_k(theta),        M_k(theta) = sum_{b in W_k} [ gain_b + phi_b(x_b'theta) ]

is convex, being a log-sum-exp of convex functions. Two sets of numbers say everything about its derivatives:

    r_k = pi_k exp(M_k - Phi)            voices: how much window k has to say here; they add up to one
    w_b = sum_{k: b in W_k} r_k          pulls: how much covariate b counts here, in [0, 1]

    gradient   sum_b w_b phi_b' x_b
    Hessian    sum_b w_b phi_b'' x_b x_b'  +  sum_k r_k (J_k - gradient)(J_k - gradient)'
               with J_k = sum_{b in W_k} phi_b' x_b, the gradient of M_k

As in :mod:`~likeset._solver.smooth.rays` everything is centred: with u = X (theta - theta_c) the sums change by
sum_{b in W_k} [phi_b'(z_b) u_b + D_b(u_b)], D the Bregman remainder, and only changes are ever added up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likeset._solver.smooth.rays import (
    MAX_TRIALS,
    UNDERFLOW,
    ball_crossing,
    centred_extreme,
    centred_terms,
    next_trial,
)
from likeset._solver.voice_sums import sum_windows
from likeset._typing import Array, IntArray
from likeset.compiling import njit
from likeset.curves import QUADRATIC

SILENT = 1e-17  # voices below this change no sum of doubles
QUIET = 1e-7  # smaller voices, and covariates with a smaller share, are left out of the Hessian (it only steers steps)


@njit(cache=True, error_model="numpy")
def speak(starts: IntArray, members: IntArray, log_voices: Array, growth: Array, voices: Array, pulls: Array) -> float:
    """Write r and w after the sums M_k grew by growth[k] from a place with voices exp(log_voices); return Phi's growth.

    ``growth`` may hold +inf (no parameter has such a likelihood): then the growth of Phi is inf.
    """
    top = -math.inf
    for k in range(growth.shape[0]):
        top = max(top, log_voices[k] + growth[k])
    pulls[:] = 0.0
    if not top < math.inf:
        voices[:] = 0.0
        return math.inf
    total = 0.0
    for k in range(growth.shape[0]):
        voices[k] = math.exp(log_voices[k] + growth[k] - top)
        total += voices[k]
    for k in range(growth.shape[0]):
        voices[k] /= total
        if voices[k] > SILENT:
            for i in range(starts[k], starts[k + 1]):
                pulls[members[i]] += voices[k]
    return top + math.log(total)


class Centred(NamedTuple):
    """Phi around a point theta_c; compiled functions take it as one argument.

    z = X theta_c; ``base`` is what ``centred_terms`` wants to know of z; ``tilt`` is phi'(z);
    ``log_voices`` are the log r_k at theta_c. The set is Phi - Phi(theta_c) <= e, |delta|^2 + 2 theta_c'delta <= e2.
    """

    X: Array
    curve: int
    a: Array
    z: Array
    base: Array
    tilt: Array
    starts: IntArray
    members: IntArray
    log_voices: Array
    theta_c: Array
    radius: float
    e: float
    e2: float


class Local(NamedTuple):
    """Workspace for Phi at one point: phi_b'', phi_b', r_k, w_b there (bend, incline, voices, pulls), and scratch."""

    bend: Array
    incline: Array
    voices: Array
    pulls: Array
    change: Array
    scratch: Array
    growth: Array
    steepness: Array


@njit(cache=True, error_model="numpy")
def workspace(K: int, W: int) -> Local:
    """Room for one point."""
    return Local(
        np.empty(K), np.empty(K), np.empty(W), np.empty(K), np.empty(K), np.empty(K), np.empty(W), np.empty(W)
    )  # fmt: skip


@njit(cache=True, error_model="numpy")
def rise_along(c: Centred, u: Array, t: float, at: Local) -> tuple[float, float, float]:
    """Phi(theta_c + t delta) - Phi(theta_c) with its first two derivatives in t, for u = X delta; fills ``at``."""
    centred_terms(c.curve, c.a, c.z, c.base, u, t, at.change, at.incline, at.bend)
    if c.curve != QUADRATIC:
        for b in range(u.shape[0]):
            if c.base[b] < UNDERFLOW:
                at.change[b], at.incline[b], at.bend[b] = centred_extreme(c.curve, c.a[b], c.z[b], t * u[b])
    for b in range(u.shape[0]):
        at.change[b] += c.tilt[b] * t * u[b]
        at.incline[b] += c.tilt[b]
        at.scratch[b] = at.incline[b] * u[b]
    sum_windows(c.starts, c.members, at.change, at.growth)
    sum_windows(c.starts, c.members, at.scratch, at.steepness)
    rise = speak(c.starts, c.members, c.log_voices, at.growth, at.voices, at.pulls)
    first, second = 0.0, 0.0
    for k in range(at.voices.shape[0]):
        first += at.voices[k] * at.steepness[k]
    for k in range(at.voices.shape[0]):
        second += at.voices[k] * (at.steepness[k] - first) ** 2
    for b in range(u.shape[0]):
        second += at.pulls[b] * at.bend[b] * u[b] * u[b]
    return rise, first, second


@njit(cache=True, error_model="numpy")
def stretch(c: Centred, delta: Array, u: Array, accuracy: float, at: Local) -> float:
    """Scale delta and u = X delta, in place, onto the boundary of the set; return the rise of Phi there.

    The point stays inside: where the likelihood is what stops it, by at most 2 accuracy e.
    """
    square, inner = 0.0, 0.0
    for j in range(delta.shape[0]):
        square += delta[j] * delta[j]
        inner += c.theta_c[j] * delta[j]
    t_ball = ball_crossing(square, inner, c.e2)
    low, high, open_end = 0.0, t_ball, True
    aim = c.e * (1.0 - accuracy)
    t, rise = min(1.0, t_ball), 0.0
    for trial in range(MAX_TRIALS + 1):
        rise, first, second = rise_along(c, u, t, at)
        psi = rise - aim
        if abs(psi) <= accuracy * c.e or (psi <= 0.0 and t >= t_ball) or trial == MAX_TRIALS:
            break
        if psi <= 0.0:
            low = t
        else:
            high, open_end = t, False
        if trial == MAX_TRIALS - 1 or high - low <= 1e-15 * high:
            t = low  # what is left of psi is rounding: settle for the point known to be inside
            if psi <= 0.0:
                break
        else:
            t = next_trial(t, psi, first, second, low, high, open_end)
    for j in range(delta.shape[0]):
        delta[j] *= t
    for b in range(u.shape[0]):
        u[b] *= t
    return rise


@njit(cache=True, error_model="numpy")
def gradient_of(c: Centred, at: Local, g: Array) -> None:
    """Write the gradient of Phi."""
    g[:] = 0.0
    for b in range(c.X.shape[0]):
        pull = at.pulls[b] * at.incline[b]
        if pull != 0.0:
            for j in range(g.shape[0]):
                g[j] += pull * c.X[b, j]


@njit(cache=True, error_model="numpy")
def hessian_factor(X: Array, starts: IntArray, members: IntArray, at: Local, g: Array) -> Array:
    """S with S'S the Hessian of Phi: rows sqrt(w_b phi_b'') x_b and sqrt(r_k) (J_k - g), but for silent ones."""
    K, d = X.shape
    W = at.voices.shape[0]
    S = np.empty((K + W, d))
    rows, heaviest = 0, 0.0
    for b in range(K):
        heaviest = max(heaviest, at.pulls[b] * at.bend[b])
    for b in range(K):
        weight = at.pulls[b] * at.bend[b]
        if weight > QUIET * heaviest:
            root = math.sqrt(weight)
            for j in range(d):
                S[rows, j] = root * X[b, j]
            rows += 1
    for k in range(W):
        if at.voices[k] > QUIET:
            for j in range(d):
                S[rows, j] = -g[j]
            for i in range(starts[k], starts[k + 1]):
                b = members[i]
                for j in range(d):
                    S[rows, j] += at.incline[b] * X[b, j]
            root = math.sqrt(at.voices[k])
            for j in range(d):
                S[rows, j] *= root
            rows += 1
    return S[:rows]
