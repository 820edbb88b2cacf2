r"""Terms around a centre: what changes when z_k becomes z_k + u_k.

    D_k(u) = phi_k(z_k + u) - phi_k(z_k) - phi_k'(z_k) u,        phi_k'(z_k + u) - phi_k'(z_k),        phi_k''(z_k + u)

for the built-in curves (:func:`~likeset.curves.centred_curve`) and for a loss of a family's own
(:mod:`likeset.losses`). Compiled functions take a :class:`CentredTerms` and need not know which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.problem import CallableTerms, CompiledTerms, CurveTerms
from likeset._typing import Array, IntArray
from likeset.compiling import inner, kernel
from likeset.curves import QUADRATIC, centred_curve, centred_extreme, curve_base
from likeset.losses import FOREIGN, summed_remainders

UNDERFLOW = 1e-200


class CentredTerms(NamedTuple):
    """phi_k around z_k, of one curve or of one loss: the fields of the other are empty.

    curve                                        the number of a built-in curve, or FOREIGN
    z                                            the centre (K,)
    a, base                                      a_k, and what ``centred_curve`` wants to know of z_k
    remainder, parameters                        the address of the loss's remainder, its parameters
    owners, points, weights, shifts              outcomes y_i of covariate owners[i], with their weights and shifts of z
    """

    curve: int
    z: Array
    a: Array
    base: Array
    remainder: int
    parameters: Array
    owners: IntArray
    points: Array
    weights: Array
    shifts: Array


class CalledTerms(NamedTuple):
    """phi_k around z_k by a user's function, which is called as it is; its values and slopes at z."""

    evaluate: Callable[[Array], tuple[Array, Array, Array]]
    z: Array
    value: Array
    slope: Array


def called_at(terms: CallableTerms, z: Array) -> CalledTerms:
    """A user's terms around z (K,)."""
    value, slope, _ = evaluate_terms(terms, z)
    return CalledTerms(terms.evaluate, z, value, slope)


def centred_at(terms: CompiledTerms, z: Array) -> CentredTerms:
    """The terms around z (K,)."""
    none = np.empty(0)
    if isinstance(terms, CurveTerms):
        a, base = np.ascontiguousarray(terms.a), curve_base(terms.curve, z)
        return CentredTerms(int(terms.curve), z, a, base, 0, none, np.empty(0, dtype=np.int64), none, none, none)
    return CentredTerms(
        FOREIGN, z, none, none, terms.loss.remainder_address, terms.parameters, terms.owners, terms.points,
        terms.weights, terms.shifts_or_zero,
    )  # fmt: skip


@inner()
def centred_terms(c: CentredTerms, u: Array, t: float, D: Array, slope: Array, weight: Array) -> None:
    """Write D_k, the change of phi_k' and phi_k'' at z + tu; those of :func:`extremes` are left to them."""
    if c.curve == FOREIGN:
        summed_remainders(
            c.remainder, c.parameters, c.owners, c.points, c.weights, c.shifts, c.z, u, t, D, slope, weight
        )  # fmt: skip
    else:
        centred_curve(c.curve, c.a, c.z, c.base, u, t, D, slope, weight)


@kernel(allocates=True)
def extremes(c: CentredTerms) -> IntArray:
    """Terms whose ``base`` has underflowed, where base * e^u would be 0 * inf: :func:`one_extreme` is for them."""
    count = 0
    if c.curve != QUADRATIC and c.curve != FOREIGN:
        for k in range(c.base.size):
            count += c.base[k] < UNDERFLOW
    found = np.empty(count, dtype=np.int64)
    for k in range(c.base.size if count > 0 else 0):
        if c.base[k] < UNDERFLOW:
            found[found.size - count] = k
            count -= 1
    return found


@inner()
def one_extreme(c: CentredTerms, k: int, u: float) -> tuple[float, float, float]:
    """D_k, the change of phi_k' and phi_k'' of one such term."""
    return centred_extreme(c.curve, c.a[k], c.z[k], u)
