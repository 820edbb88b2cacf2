r"""Which of the three curves a family is made of, after a change of variable: what comparisons of two arms go by.

    sum_i w_i [-log p(y_i | z)] = a A(u) - s u + ...,      u = sign z + shift

    family                                          A           u                 a                    s
    those derived from CurveFamily                  their own   z                 sum w a(y)           sum w s(y)
    Gamma of shape k, -log p = k (z + y e^-z)       e^u         -z                sum w k y            sum w k
    negative binomial, r = 1/dispersion             softplus    z - log r         sum w (y + r)        sum w y

``unit`` is the size of an effect on z that is worth comparing with: one for log odds and log rates, the deviation of
the noise where it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likeset._solver.problem import CurveTerms, LossTerms, Terms
from likeset._typing import Array
from likeset.curves import Curve
from likeset.families.base import Family


@dataclass(frozen=True)
class Canonical:
    """The curve, u = sign z + shift, and (a, s) from weighted means of y and sums of weights; None: terms have them."""

    curve: Curve
    sign: float = 1.0
    shift: float = 0.0
    unit: float = 1.0
    sums: Callable[[Array, Array], tuple[Array, Array]] | None = None

    def terms(self, terms: Terms) -> CurveTerms | None:
        """The terms of the evidence as functions of u; None if they are of another kind (offsets, say)."""
        if isinstance(terms, CurveTerms):
            return terms
        if self.sums is None or not isinstance(terms, LossTerms) or terms.shifts_or_zero.any():
            return None
        a, s = np.zeros(len(terms.starts) - 1), np.zeros(len(terms.starts) - 1)
        one_a, one_s = self.sums(terms.points, terms.weights)
        np.add.at(a, terms.owners, one_a)
        np.add.at(s, terms.owners, one_s)
        return CurveTerms(self.curve, a, s)


def canonical_form(family: Family) -> Canonical | None:
    """The curve that a family is made of; None if it is none of the three.

    >>> from likeset.families import Gamma, Laplace, Poisson
    >>> canonical_form(Gamma(shape=4.0)).sign, canonical_form(Poisson()).sign, canonical_form(Laplace(1.0))
    (-1.0, 1.0, None)
    """
    own = getattr(family, "canonical_form", None)
    if own is not None:
        return own()  # type: ignore[no-any-return]
    curve = getattr(family, "curve", None)
    if not isinstance(curve, Curve):
        return None
    scale = getattr(family, "canonical_scale", None)
    return Canonical(curve, unit=scale**-0.5 if curve is Curve.QUADRATIC and scale is not None else 1.0)
