r"""What observations may lose because their covariates stick out of the basis a little, in nats.

A covariate x_k whose section is in the span only up to a length r_k has z_k = x_k'theta + d_k, with theta the
coordinates that the set is described by and |d_k| <= B r_k (:mod:`likeset.spaces.features`). The set is solved for with
d = 0. It stays a superset of the true one if its level rises by a *charge* D with

    sum_k phi_k(z_k - d_k) <= sum_k phi_k(z_k) + D     whenever  sum_k phi_k(z_k) <= level.

Then T_k = phi_k(z_k) - min phi_k >= 0 add up to at most S = level - sum_k min phi_k, the ``slack`` to the best z for
every covariate on its own, and slopes are bounded by what is left of it. With W = sum_k l_k r_k^2:

    quadratic, softplus    phi'^2 <= 2 l T           l = a, a/4    D = B sqrt(2 S W) + B^2 W / 2
    exponential            phi'^2 <= 4 T (S + s)     l = S + s     D = 2 B sqrt(S W) + e^{max |d|} B^2 W
    points (Laplace)       |phi'| <= v, the sum of weights         D = B sum_k v_k r_k
    any convex function    |phi'| <= v, its largest at the ends of the reach of z: the same

(for phi = a e^z - s z put e^v = a e^z / s: T = s (e^v - v - 1), |phi'| = s |e^v - 1| <= T + sqrt(T^2 + 2 T s)).
For an average of ratios, S is the largest of its voices', and D bounds each of them, hence the average.
"""

from __future__ import annotations

from math import exp, inf, sqrt

import numpy as np

from likeset._solver.problem import CurveTerms, PointTerms, Terms
from likeset._typing import Array
from likeset.compiling import kernel
from likeset.curves import Curve, term_minima


@kernel()
def curve_charge(curve: int, a: Array, s: Array, squares: Array, bound: float, slack: float) -> float:
    """D of the module's table; ``squares`` are the r_k^2."""
    total = longest = 0.0
    for k in range(len(a)):
        weight = a[k] if curve == 0 else (slack + s[k] if curve == 1 else 0.25 * a[k])
        if a[k] > 0.0:
            total += weight * squares[k]
            longest = max(longest, squares[k])
    if total == 0.0:
        return 0.0
    if curve == 1:
        return 2.0 * bound * sqrt(slack * total) + exp(bound * sqrt(longest)) * bound * bound * total
    return bound * sqrt(2.0 * slack * total) + 0.5 * bound * bound * total


def minima(terms: Terms) -> Array | None:
    """min phi_k of every covariate; None where the charge does not depend on it."""
    if not isinstance(terms, CurveTerms):
        return None
    lowest = term_minima(terms.curve, terms.a, terms.s, terms.origins)
    # A slope that rounding has put out of the curve's reach is the one at its end, where A is zero.
    end = 0.0 if terms.origins is None else -terms.a * np.exp(terms.origins)
    return np.where(np.isneginf(lowest), end, lowest)


def charge_of(terms: Terms, squares: Array, bound: float, slack: float, reach: Array) -> float:
    """D for terms whose covariates have squared lengths ``squares`` outside the span and |z_k| <= ``reach``."""
    if not squares.any():
        return 0.0
    if bound == inf:
        return inf
    if isinstance(terms, CurveTerms):
        s = terms.s
        if terms.curve is Curve.EXPONENTIAL and terms.origins is not None:
            s = s + terms.a * np.exp(terms.origins)
        found = float(curve_charge(int(terms.curve), terms.a, s, squares, bound, max(slack, 0.0)))
        return found if found < inf else inf
    if isinstance(terms, PointTerms):
        owners = np.repeat(np.arange(len(squares)), np.diff(terms.starts))
        slopes = np.bincount(owners, weights=terms.weights, minlength=len(squares))
    else:
        ends = reach + bound * np.sqrt(squares)
        slopes = np.abs(terms.evaluate(np.stack([-ends, ends]))[1]).max(axis=0)
    found = bound * float(slopes @ np.sqrt(squares))
    return found if found < inf else inf
