"""The Laplace approximation of the posterior, read as a confidence set. A heuristic."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.problem import CurveTerms
from likeset._typing import Array
from likeset.arguments import flag, positive
from likeset.comparison.base import Comparison, check_model, default_penalty
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.likelihood import likelihood_terms, lowest
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.families.curve_family import CurveFamily
from likeset.families.gaussian import Gaussian
from likeset.spaces.base import Space


class LaplaceApproximation(Comparison):
    r"""The ellipsoid of the likelihood's curvature at its penalised maximum, with a fixed radius.

        theta_hat = argmin L_t(theta) + lambda |theta|^2 / 2,      V = sum A''(theta_hat'x) x x' + lambda I
        |theta - theta_hat|_V^2 <= 2 log(1/alpha)

    For Poisson counts A'' = e^z, the paper's heuristic; here for every exponential family but the Gaussian (where it is
    ``Heuristic``). The paper's V has no lambda I, which leaves the set unbounded off the data; with it, V is the
    curvature of what theta_hat minimises, whose penalty is half of the paper's lambda |theta|^2. The estimate is not
    constrained to Theta. **No coverage.** Not cut with Theta unless ``within_theta=True``.

    penalty   lambda, by default 1 / B^2; chosen before the data

    Source: Emmenegger, Mutny, Krause (2023), appendix "Poisson heuristics".
    """

    name = "Laplace approx."
    provable = False
    anytime = True
    assumptions = "none that would make it true at finite n"
    source = "Emmenegger, Mutny, Krause 2023, appendix"

    def __init__(
        self, space: Space, alpha: float, family: CurveFamily, penalty: float | None = None, within_theta: bool = False
    ) -> None:
        super().__init__(space, alpha, family)
        if not isinstance(family, CurveFamily):
            raise InvalidArgumentError(
                "family", family, "has no curvature to approximate with", "use an exponential family, or Heuristic"
            )
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)
        self.within_theta = flag("within_theta", within_theta)
        self._centre = np.zeros(0)

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Exponential families with a curvature that depends on theta."""
        check_model(family, space, alpha)
        applies = isinstance(family, CurveFamily) and not isinstance(family, Gaussian)
        return cls(space, alpha, family) if applies else None  # type: ignore[arg-type]

    def _snapshot(self) -> Ellipsoid:
        X, terms, _ = likelihood_terms(self._stream)
        assert isinstance(terms, CurveTerms)
        self._centre = lowest(X, terms, np.inf, self.penalty, self._centre)[0]
        precision = (X.T * self._curvature(X, terms)) @ X + self.penalty * np.eye(X.shape[1])
        return self._ellipsoid(
            centre=self._centre,
            precision=precision,
            outside=self.penalty,
            squared_radius=2 * float(np.log(1 / self.alpha)),
        )

    def _curvature(self, X: Array, terms: CurveTerms) -> Array:
        """a_k A''(x_k'theta_hat)."""
        return evaluate_terms(terms, X @ self._centre)[2]
