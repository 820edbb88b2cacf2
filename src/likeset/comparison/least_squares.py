r"""Sums of a ridge regression in the growing basis, and what sets made from them alone share.

gram = sum_s x_s x_s',    moment = sum_s x_s r_s,    energy = sum_s r_s^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array
from likeset.arguments import positive
from likeset.comparison.base import Comparison, check_model
from likeset.embedded import Embedded
from likeset.families.base import Family
from likeset.families.gaussian import Gaussian
from likeset.spaces.base import Space
from likeset.undo import Undo


@dataclass(frozen=True)
class Ridge:
    """V = gram/scale^2 + penalty I on the span: its solution, log det(V / penalty), and |centre|_V^2."""

    precision: Array
    centre: Array
    log_determinant: float
    explained: float


class LeastSquares:
    """The three sums, updated one observation at a time."""

    def __init__(self) -> None:
        self.gram, self.moment, self.energy, self.count = np.zeros((0, 0)), np.zeros(0), 0.0, 0

    def add(self, x: Array, response: float) -> None:
        """One observation; x in coordinates of the basis, which may have grown."""
        missing = len(x) - len(self.moment)
        if missing:
            self.gram, self.moment = np.pad(self.gram, (0, missing)), np.pad(self.moment, (0, missing))
        self.gram += np.outer(x, x)
        self.moment += x * response
        self.energy += response**2
        self.count += 1

    def remember(self, undo: Undo) -> None:
        """Before ``add``: keep the sums."""
        undo.keep(self, written=("gram", "moment"))

    def ridge(self, scale: float, penalty: float) -> Ridge:
        """Ridge regression with noise variance scale^2 and prior precision ``penalty``."""
        d = len(self.moment)
        if d == 0:
            return Ridge(np.zeros((0, 0)), np.zeros(0), 0.0, 0.0)
        precision = self.gram / scale**2 + penalty * np.eye(d)
        moment = self.moment / scale**2
        with SingleThreadedBlas():
            centre: Array = np.asarray(np.linalg.solve(precision, moment), dtype=np.float64)
            log_determinant = float(np.linalg.slogdet(precision / penalty)[1])
        return Ridge(precision, centre, log_determinant, float(moment @ centre))


class LeastSquaresSet(Comparison):
    """A set for Gaussian noise that looks at the data through these sums only."""

    needs_bound: ClassVar[bool]
    """Whether the radius depends on a finite B."""

    def __init__(self, space: Space, alpha: float, sigma: float) -> None:
        self.sigma = positive("sigma", sigma)
        super().__init__(space, alpha, Gaussian(self.sigma))
        self._sums = LeastSquares()
        self._sticking_out = 0.0

    @property
    def misfit(self) -> float:
        """Largest length, in units of sigma, of what the observations' covariates stick out of the basis by."""
        return self.space.bound * float(np.sqrt(self._sticking_out)) / self.sigma if self._sticking_out else 0.0

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Gaussian noise, and a finite bound where the set needs one."""
        check_model(family, space, alpha)
        if not isinstance(family, Gaussian) or (cls.needs_bound and not np.isfinite(space.bound)):
            return None
        return cls(space, alpha, family.sigma)

    def _remember(self, undo: Undo, phi: Embedded) -> None:
        undo.keep(self)
        self._sums.remember(undo)

    def _observe(self, phi: Embedded, y: Array) -> None:
        self._sums.add(phi.coordinates, float(y))
        self._sticking_out += phi.outside**2
