r"""Covariates in units of their columns, so that beliefs about theta do not depend on units of measurement.

A prior N(0, I/lambda) means something only if the entries of theta have sizes that can be compared. Metres beside an
intercept, or millimetres instead, change that by powers of ten. So every column k gets a unit of its own, the largest
entry of it so far,

    m_k = max over s of |x_sk|,        x'theta = (x/m)'(m theta),

the row whose y comes next included, and the prior is about m theta. Where a row brings larger units the prior grows
with them, before its forecast: to lambda |m theta|^2/2 is added what the new units ask for, and where the beliefs are
exact the shares of the lambdas become those of Bayes' rule with these units from the start. All of this is known before
y is, so forecasts are predictable, and the same whatever units columns are measured in.
"""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.families.beliefs import Beliefs
from likeset.state_checks import expect_array
from likeset.undo import Undo

MOST_COLUMNS = 64  # beyond, beliefs stay on the span of the covariates seen, which is smaller at first


class ColumnUnits:
    """m_k, zero for columns in which nothing was seen.

    >>> units = ColumnUnits(2)
    >>> units.observe(np.array([1.0, 2000.0]))
    >>> units.measured(np.array([1.0, 1000.0]))
    array([1. , 0.5])
    >>> units.ratios(np.array([1.0, 1000.0]))
    >>> units.ratios(np.array([1.0, 4000.0]))                        # what was 1 is 1/2 with this row
    array([1. , 0.5])
    """

    def __init__(self, dim: int) -> None:
        self.units = np.zeros(dim)

    def measured(self, x: Array) -> Array:
        """x/m, with units that x itself brings."""
        units = np.maximum(self.units, np.abs(x))
        return x / units if units.all() else np.divide(x, units, out=np.zeros_like(x), where=units > 0.0)

    def seen(self, phi: Embedded) -> Embedded:
        """The covariate with these as its coordinates."""
        return Embedded(phi.x, self.measured(phi.x), phi.index, phi.outside, phi.given, phi.law)

    def ratios(self, x: Array) -> Array | None:
        """Units in terms of those that x brings, if any change; new columns have nothing to be changed."""
        old, new = self.units, np.maximum(self.units, np.abs(x))
        if (old == new).all():
            return None
        ratios = np.divide(old, new, out=np.ones_like(old), where=old > 0.0)
        return ratios if (ratios < 1.0).any() else None

    def observe(self, x: Array) -> None:
        """Take the units that x brings; the array is replaced."""
        self.units = np.maximum(self.units, np.abs(x))

    def remember(self, undo: Undo) -> None:
        """Keep the units."""
        undo.keep(self)

    def of_theta(self, beliefs: Beliefs, vectors: Array) -> Beliefs:
        """Beliefs about m theta as beliefs about theta on the span of orthonormal columns ``vectors``."""
        units = np.where(self.units > 0.0, self.units, 1.0)
        found = Beliefs(beliefs.priors * float(np.median(units)) ** 2)
        if beliefs.means.shape[1]:
            span = vectors / units[:, None]
            found.means = np.ascontiguousarray(beliefs.means @ span)
            roots = np.linalg.solve(beliefs.factors, np.broadcast_to(span, (len(beliefs.priors), *span.shape)))
            precision = np.linalg.inv(roots.transpose(0, 2, 1) @ roots)
            found.factors = np.ascontiguousarray(
                np.linalg.cholesky(0.5 * (precision + precision.transpose(0, 2, 1))), dtype=np.float64
            )
        return found

    def state(self) -> dict[str, Array]:
        """The units."""
        return {"columns": self.units}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        units = expect_array(state, "columns", self.units.shape)
        if (units < 0.0).any():
            raise ValueError("a column's unit is negative")
        self.units = units
