r"""Several sums of the same terms, averaged in the exponent: the function behind a mixture of voices.

    Phi(theta) = log sum_k pi_k exp M_k(theta),        M_k(theta) = sum_{g in voice k} [ gain_g + phi_g(x_g'theta) ]

is convex, being a log-sum-exp of convex functions. With the voices r_k = pi_k exp(M_k - Phi), how much each has to say
here (they add up to one), its derivatives are averages,

    gradient   sum_k r_k J_k                                                          J_k the gradient of M_k
    Hessian    sum_k r_k H_k  +  sum_k r_k (J_k - gradient)(J_k - gradient)'          H_k the Hessian of M_k

As in :mod:`~likeset._solver.smooth.rays` everything is centred: with u = X (theta - theta_c) only changes are added up.

**Rows.** Several groups may have one covariate: those of one row x_b share z_b, and if they share their curve A as
well, what voice k hears there is  a_kb A(z) - s_kb z.  So curves are evaluated once for each row, with a = 1, and a
voice has an *entry* for each row it hears: the amount a_kb, and the tilt, its slope at the centre. With D, A' - A'(z),
A'' of the row the changes of M_k, J_k and H_k are

    sum_b [ tilt_kb u_b + a_kb D_b ],     sum_b [ tilt_kb + a_kb (A' - A'(z))_b ] x_b,     sum_b a_kb A''_b x_b x_b'.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likeset._solver.smooth.centred import CentredTerms, centred_terms, one_extreme
from likeset._solver.smooth.rays import MAX_TRIALS, ball_crossing, next_trial
from likeset._typing import Array, IntArray
from likeset.compiling import inner, kernel

SILENT = 1e-17  # voices below this change no sum of doubles
QUIET = 1e-7  # smaller voices, and rows with a smaller share, are left out of the Hessian (it only steers steps)


class Centred(NamedTuple):
    """Phi around a point theta_c; compiled functions take it as one argument.

    ``terms`` are those of the rows around z = X theta_c, ``extreme`` the numbers of :func:`extremes`; voice k has the
    entries starts[k] : starts[k + 1] of ``rows``, ``amounts`` and ``tilts``; ``log_voices`` are the log r_k at theta_c.
    The set is Phi - Phi(theta_c) <= e, |delta|^2 + 2 theta_c'delta <= e2.
    """

    X: Array
    terms: CentredTerms
    extreme: IntArray
    starts: IntArray
    rows: IntArray
    amounts: Array
    tilts: Array
    log_voices: Array
    theta_c: Array
    bound: float
    e: float
    e2: float


class Local(NamedTuple):
    """Workspace for Phi at one point.

    change, slope, bend    D, A' - A'(z) and A'' of every row
    voices                 r_k
    incline, mass          sum_k r_k (tilt + a slope) and sum_k r_k a of every row
    growth, steepness      of every M_k: its change, and its slope along the ray
    """

    change: Array
    slope: Array
    bend: Array
    voices: Array
    incline: Array
    mass: Array
    growth: Array
    steepness: Array


@kernel()
def workspace(K: int, W: int) -> Local:
    """Room for one point."""
    return Local(
        np.empty(K), np.empty(K), np.empty(K), np.empty(W), np.empty(K), np.empty(K), np.empty(W), np.empty(W)
    )  # fmt: skip


@inner()
def speak(log_voices: Array, growth: Array, voices: Array) -> float:
    """Write r after the sums M_k grew by growth[k] from a place with voices exp(log_voices); return Phi's growth.

    ``growth`` may hold +inf (no parameter has such a likelihood): then the growth of Phi is inf.
    """
    top = -math.inf
    for k in range(growth.shape[0]):
        top = max(top, log_voices[k] + growth[k])
    if not top < math.inf:
        for k in range(voices.shape[0]):
            voices[k] = 0.0
        return math.inf
    total = 0.0
    for k in range(growth.shape[0]):
        voices[k] = math.exp(log_voices[k] + growth[k] - top)
        total += voices[k]
    for k in range(growth.shape[0]):
        voices[k] /= total
    return top + math.log(total)


@inner()
def rise_along(c: Centred, u: Array, t: float, at: Local) -> tuple[float, float, float]:
    """Phi(theta_c + t delta) - Phi(theta_c) with its first two derivatives in t, for u = X delta; fills ``at``."""
    centred_terms(c.terms, u, t, at.change, at.slope, at.bend)
    for b in c.extreme:
        at.change[b], at.slope[b], at.bend[b] = one_extreme(c.terms, b, t * u[b])
    for k in range(c.log_voices.shape[0]):
        growth, steepness = 0.0, 0.0
        for i in range(c.starts[k], c.starts[k + 1]):
            b = c.rows[i]
            growth += c.amounts[i] * at.change[b] + c.tilts[i] * (t * u[b])
            steepness += (c.amounts[i] * at.slope[b] + c.tilts[i]) * u[b]
        at.growth[k], at.steepness[k] = growth, steepness
    rise = speak(c.log_voices, at.growth, at.voices)
    for b in range(u.shape[0]):
        at.incline[b], at.mass[b] = 0.0, 0.0
    first, second = 0.0, 0.0
    for k in range(at.voices.shape[0]):
        r = at.voices[k]
        if r > SILENT:
            first += r * at.steepness[k]
            for i in range(c.starts[k], c.starts[k + 1]):
                b = c.rows[i]
                at.mass[b] += r * c.amounts[i]
                at.incline[b] += r * (c.tilts[i] + c.amounts[i] * at.slope[b])
    for k in range(at.voices.shape[0]):
        if at.voices[k] > SILENT:
            second += at.voices[k] * (at.steepness[k] - first) ** 2
    for b in range(u.shape[0]):
        second += at.mass[b] * at.bend[b] * u[b] * u[b]
    return rise, first, second


@inner()
def stretch(c: Centred, delta: Array, u: Array, accuracy: float, at: Local) -> float:
    """Scale delta and u = X delta, in place, onto the boundary of the set; return the rise of Phi there.

    The point stays inside: where the likelihood is what stops it, by at most 2 accuracy e.
    """
    square, inner = 0.0, 0.0
    for j in range(delta.shape[0]):
        square += delta[j] * delta[j]
        inner += c.theta_c[j] * delta[j]
    low, high, open_end = 0.0, ball_crossing(square, inner, c.e2), True
    aim = c.e * (1.0 - accuracy)
    t, rise = min(1.0, high), 0.0
    for trial in range(MAX_TRIALS + 1):
        rise, first, second = rise_along(c, u, t, at)
        t, low, high, open_end, found = next_trial(
            trial, t, rise - aim, first, second, low, high, open_end, accuracy * c.e
        )
        if found:
            break
    for j in range(delta.shape[0]):
        delta[j] *= t
    for b in range(u.shape[0]):
        u[b] *= t
    return rise


@inner()
def gradient_of(c: Centred, at: Local, g: Array) -> None:
    """Write the gradient of Phi."""
    for j in range(g.shape[0]):
        g[j] = 0.0
    for b in range(c.X.shape[0]):
        incline = at.incline[b]
        if incline != 0.0:
            for j in range(g.shape[0]):
                g[j] += incline * c.X[b, j]


@inner()
def hessian_factor(c: Centred, at: Local, g: Array) -> Array:
    """S with S'S the Hessian of Phi: rows sqrt(mass_b A''_b) x_b and sqrt(r_k) (J_k - g), but for silent ones."""
    K, d = c.X.shape
    W = at.voices.shape[0]
    S = np.empty((K + W, d))
    rows, heaviest = 0, 0.0
    for b in range(K):
        heaviest = max(heaviest, at.mass[b] * at.bend[b])
    for b in range(K):
        weight = at.mass[b] * at.bend[b]
        if weight > QUIET * heaviest:
            root = math.sqrt(weight)
            for j in range(d):
                S[rows, j] = root * c.X[b, j]
            rows += 1
    for k in range(W):
        if at.voices[k] > QUIET:
            for j in range(d):
                S[rows, j] = -g[j]
            for i in range(c.starts[k], c.starts[k + 1]):
                b = c.rows[i]
                incline = c.tilts[i] + c.amounts[i] * at.slope[b]
                for j in range(d):
                    S[rows, j] += incline * c.X[b, j]
            root = math.sqrt(at.voices[k])
            for j in range(d):
                S[rows, j] *= root
            rows += 1
    return S[:rows]
