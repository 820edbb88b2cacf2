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

Where voices hear most rows, all have an entry for every row, zero where they do not hear it: sums along rows in memory
are several times as fast as sums over a list of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likeset._solver.smooth.centred import CentredTerms, centred_terms, one_extreme
from likeset._solver.smooth.rays import MAX_TRIALS, ball_crossing, next_trial
from likeset._typing import Array, IntArray
from likeset.compiling import REORDER, inner, kernel

SILENT = 1e-17  # voices below this change no sum of doubles
QUIET = 1e-7  # smaller voices, and rows with a smaller share, are left out of the Hessian (it only steers steps)
LARGEST = 1e300  # of what a row adds, before it is multiplied by an amount: zero times it is zero
FAR = 10.0  # times e: so far above the boundary the model of a ray is not trusted to be near it
ENDLESS = 1e250  # growth that stands for infinity


class Centred(NamedTuple):
    """Phi around a point theta_c; compiled functions take it as one argument.

    ``X`` comes twice, ``Xt`` is it transposed; ``terms`` are those of the rows around z = X theta_c, ``extreme`` the
    numbers of :func:`extremes`. Voice k has the entries amounts[k] and tilts[k], one for every row; or, if there are
    ``rows``, the entries starts[k] : starts[k + 1] of ``rows``, amounts[0] and tilts[0]. ``log_voices`` are the log r_k
    at theta_c.
    The set is Phi - Phi(theta_c) <= e, |delta|^2 + 2 theta_c'delta <= e2.
    """

    X: Array
    Xt: Array
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

    change, slope, bend        D, A' - A'(z) and A'' of every row
    voices                     r_k
    incline, mass              sum_k r_k (tilt + a slope) and sum_k r_k a of every row
    lines                      of every voice: sum_b tilt_kb u_b
    growth, steepness, bow     of every M_k: its change, and its slope and second derivative along the ray
    """

    change: Array
    slope: Array
    bend: Array
    voices: Array
    incline: Array
    mass: Array
    lines: Array
    growth: Array
    steepness: Array
    bow: Array


@kernel(allocates=True)
def workspace(K: int, W: int) -> Local:
    """Room for one point."""
    return Local(
        np.empty(K), np.empty(K), np.empty(K), np.empty(W), np.empty(K), np.empty(K), np.empty(W), np.empty(W),
        np.empty(W), np.empty(W),
    )  # fmt: skip


@inner()
def speak(log_voices: Array, growth: Array, voices: Array) -> float:
    """Write r after the sums M_k grew by growth[k] from a place with voices exp(log_voices); return Phi's growth.

    Where ``growth`` is :data:`ENDLESS` (no parameter has such a likelihood) that of Phi is inf.
    """
    top = -math.inf
    for k in range(growth.shape[0]):
        top = max(top, log_voices[k] + growth[k])
    total, ends = 0.0, top < ENDLESS
    for k in range(growth.shape[0]):
        voices[k] = math.exp(log_voices[k] + growth[k] - top) if ends else 0.0
        total += voices[k]
    scale = 1.0 / total if ends else 0.0
    for k in range(growth.shape[0]):
        voices[k] *= scale
    return top + math.log(total) if ends else math.inf


# References to arrays are counted, which can take longer than a sum over forty rows. The compiler leaves the counting
# out where loops index matrices, instead of taking rows out of them, and branches lie inside of loops.


@inner(fastmath=REORDER)
def draw_lines(c: Centred, u: Array, at: Local) -> None:
    """Write ``lines``, the part of every M_k that is linear along the ray of u."""
    for k in range(at.lines.shape[0]):
        total = 0.0
        if c.rows.shape[0] == 0:
            for b in range(u.shape[0]):
                total += c.tilts[k, b] * u[b]
        else:
            for i in range(c.starts[k], c.starts[k + 1]):
                total += c.tilts[0, i] * u[c.rows[i]]
        at.lines[k] = total


@inner(fastmath=REORDER)
def add_up(c: Centred, u: Array, at: Local) -> None:
    """Write ``growth``, ``steepness`` and ``bow`` without ``lines``; ``incline`` and ``mass`` are scratch."""
    change, slopes, bends = at.change, at.incline, at.mass
    for b in range(u.shape[0]):
        change[b] = change[b] if change[b] < LARGEST else LARGEST
        at.slope[b] = at.slope[b] if abs(at.slope[b]) < LARGEST else LARGEST
        at.bend[b] = at.bend[b] if at.bend[b] < LARGEST else LARGEST
        slopes[b], bends[b] = at.slope[b] * u[b], at.bend[b] * (u[b] * u[b])
    for k in range(at.growth.shape[0]):
        growth, steepness, bow = 0.0, 0.0, 0.0
        if c.rows.shape[0] == 0:
            for b in range(u.shape[0]):
                growth += c.amounts[k, b] * change[b]
                steepness += c.amounts[k, b] * slopes[b]
                bow += c.amounts[k, b] * bends[b]
        else:
            for i in range(c.starts[k], c.starts[k + 1]):
                b = c.rows[i]
                growth += c.amounts[0, i] * change[b]
                steepness += c.amounts[0, i] * slopes[b]
                bow += c.amounts[0, i] * bends[b]
        at.growth[k], at.steepness[k], at.bow[k] = growth, steepness, bow


@inner()
def rise_along(c: Centred, u: Array, t: float, at: Local) -> tuple[float, float, float]:
    """Phi(theta_c + t delta) - Phi(theta_c) with its first two derivatives in t, for u = X delta.

    ``at.lines`` are those of u; fills ``at`` but for ``incline`` and ``mass``, see :func:`pull_together`.
    """
    centred_terms(c.terms, u, t, at.change, at.slope, at.bend)
    for i in range(c.extreme.shape[0]):
        b = c.extreme[i]
        at.change[b], at.slope[b], at.bend[b] = one_extreme(c.terms, b, t * u[b])
    add_up(c, u, at)
    for k in range(at.lines.shape[0]):
        at.growth[k] += t * at.lines[k]
        at.steepness[k] += at.lines[k]
    rise, first, second = speak(c.log_voices, at.growth, at.voices), 0.0, 0.0
    for k in range(at.voices.shape[0]):
        if at.voices[k] > SILENT:
            first += at.voices[k] * at.steepness[k]
    for k in range(at.voices.shape[0]):
        if at.voices[k] > SILENT:
            second += at.voices[k] * (at.bow[k] + (at.steepness[k] - first) ** 2)
    return rise, first, second


@inner(fastmath=REORDER)
def pull_together(c: Centred, at: Local) -> None:
    """Write ``incline`` and ``mass`` at the point where ``at`` was filled."""
    for b in range(at.mass.shape[0]):
        at.incline[b], at.mass[b] = 0.0, 0.0
    for k in range(at.voices.shape[0]):
        r = at.voices[k]
        if r > SILENT:
            if c.rows.shape[0] == 0:
                for b in range(at.mass.shape[0]):
                    at.mass[b] += r * c.amounts[k, b]
                    at.incline[b] += r * c.tilts[k, b]
            else:
                for i in range(c.starts[k], c.starts[k + 1]):
                    at.mass[c.rows[i]] += r * c.amounts[0, i]
                    at.incline[c.rows[i]] += r * c.tilts[0, i]
    for b in range(at.mass.shape[0]):
        at.incline[b] += at.mass[b] * at.slope[b]


@inner()
def stretch(c: Centred, delta: Array, u: Array, accuracy: float, at: Local, seen: tuple[float, float, float]) -> float:
    """Scale delta and u = X delta, in place, onto the boundary of the set; return the rise of Phi there.

    The point stays inside: where the likelihood is what stops it, by at most 2 accuracy e. ``seen`` is what
    :func:`rise_along` said where u is now, ``at`` being as it was left then, or :data:`UNSEEN`.
    """
    square, inner = 0.0, 0.0
    for j in range(delta.shape[0]):
        square += delta[j] * delta[j]
        inner += c.theta_c[j] * delta[j]
    low, high, open_end = 0.0, ball_crossing(square, inner, c.e2), True
    aim = c.e * (1.0 - accuracy)
    t, rise, first, second = min(1.0, high), seen[0], seen[1], seen[2]
    known = rise == rise and t == 1.0
    if rise != rise:
        draw_lines(c, u, at)
    for trial in range(MAX_TRIALS + 1):
        if not known:
            rise, first, second = rise_along(c, u, t, at)
        known = False
        t, low, high, open_end, found = next_trial(
            trial, t, rise - aim, first, second, low, high, open_end, accuracy * c.e
        )
        if found:
            break
        if rise - aim > FAR * c.e:  # where terms grow like e^z, models of them come back in small steps
            t = min(t, 0.5 * (low + high))
    for j in range(delta.shape[0]):
        delta[j] *= t
    for b in range(u.shape[0]):
        u[b] *= t
    return rise


UNSEEN = (math.nan, math.nan, math.nan)


@inner(fastmath=REORDER)
def gradient_of(c: Centred, at: Local, g: Array) -> None:
    """Write the gradient of Phi, from ``incline``."""
    for j in range(g.shape[0]):
        total = 0.0
        for b in range(at.incline.shape[0]):
            total += c.Xt[j, b] * at.incline[b]
        g[j] = total


@inner(fastmath=REORDER)
def gradient_apart(c: Centred, k: int, at: Local, g: Array, out: Array) -> None:
    """Write J_k - g of one voice."""
    for j in range(out.shape[0]):
        total = -g[j]
        if c.rows.shape[0] == 0:
            for b in range(at.slope.shape[0]):
                total += (c.tilts[k, b] + c.amounts[k, b] * at.slope[b]) * c.Xt[j, b]
        else:
            for i in range(c.starts[k], c.starts[k + 1]):
                b = c.rows[i]
                total += (c.tilts[0, i] + c.amounts[0, i] * at.slope[b]) * c.Xt[j, b]
        out[j] = total


@inner(fastmath=REORDER)
def small_hessian(c: Centred, at: Local, g: Array, H: Array, row: Array, apart: Array) -> None:
    """Write the lower triangle of the Hessian of Phi, but for silent voices; the last two are scratch."""
    for i in range(H.shape[0]):
        for b in range(row.shape[0]):
            row[b] = at.mass[b] * at.bend[b] * c.Xt[i, b]
        for j in range(i + 1):
            total = 0.0
            for b in range(row.shape[0]):
                total += c.Xt[j, b] * row[b]
            H[i, j] = total
    for k in range(at.voices.shape[0]):
        if at.voices[k] > QUIET:
            gradient_apart(c, k, at, g, apart)
            for i in range(H.shape[0]):
                factor = at.voices[k] * apart[i]
                for j in range(i + 1):
                    H[i, j] += factor * apart[j]


@inner(allocates=True)
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
            for i in range(K if c.rows.shape[0] == 0 else c.starts[k + 1] - c.starts[k]):
                if c.rows.shape[0] == 0:
                    b, incline = i, c.tilts[k, i] + c.amounts[k, i] * at.slope[i]
                else:
                    entry = c.starts[k] + i
                    b = c.rows[entry]
                    incline = c.tilts[0, entry] + c.amounts[0, entry] * at.slope[b]
                if incline != 0.0:
                    for j in range(d):
                        S[rows, j] += incline * c.X[b, j]
            root = math.sqrt(at.voices[k])
            for j in range(d):
                S[rows, j] *= root
            rows += 1
    return S[:rows]
