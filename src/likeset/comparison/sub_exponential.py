"""The paper's Proposition 3: pseudo-maximisation for sub-exponential noise, with its constants chosen beforehand."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._typing import Array
from likeset.arguments import flag, positive, positive_integer
from likeset.comparison.base import Comparison, check_model, finite_bound, longest_covariate, parameter_dimension
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.least_squares import LeastSquares
from likeset.comparison.pseudo_maximisation import SubExponentialConstants, constants_for
from likeset.comparison.responses import refuse_censored, response
from likeset.comparison.tails import tails_of
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.spaces.base import Space
from likeset.undo import Undo


class SubExponential(Comparison):
    r"""Ridge regression for noise with log E e^{u noise} <= nu^2 u^2 / 2 on |u| <= 1/gamma.

        V = sum x x' / nu^2 + lambda I,   theta_hat = V^-1 sum x r / nu^2,   K = nu^2 / (gamma max|x|),   0 < k < 1
        |theta - theta_hat|_V <= sqrt(lambda) B + min over 0 < r <= sqrt(lambda) k K of  r/2 + price / r
        price = d log 1/(1-k) + log( det V^{1/2} / (alpha lambda^{d/2}) )

    The response r and its noise are those of :mod:`likeset.comparison.responses`: Laplace noise, and survival times
    through their logarithm. Each nu is used with the smallest gamma that it allows (:mod:`likeset.comparison.tails`).

    Where the paper differs: its display lacks a plus in V and writes B for the K of its proof; its proof loses the 1/2
    of r/2 and always takes the largest r. Its pair for Laplace noise, (b, 2 b^2), is not valid: the variance is 2 b^2.
    Its nu = 1 for log T at p = 2 is valid for its t < 1/2 (and up to 1.757), though 0.687 would do there; the display
    of the moments, Gamma(1 - t/2) e^t, is not that of a centred variable. Needs a finite dimension d (an RKHS needs a
    finite domain: its numerical rank) and max|x|, by default 1 or the domain's; longer covariates are refused. Not cut
    with Theta unless ``within_theta=True``.

    constants   from :func:`~likeset.comparison.choose_constants`, before the data; ``None`` chooses for ``horizon``

    Source: Emmenegger, Mutny, Krause (2023), Proposition 3, after Faury et al. (2020) and Mutny, Krause (2021).
    """

    name = "sub-exponential"
    provable = True
    anytime = True
    assumptions = "linear mean of r(y), (nu, gamma)-sub-exponential noise, |theta*| <= B, |x| <= max|x|, dimension d"
    source = "Emmenegger, Mutny, Krause 2023, Proposition 3"

    def __init__(
        self,
        space: Space,
        alpha: float,
        family: Family,
        constants: SubExponentialConstants | None = None,
        longest: float | None = None,
        horizon: int = 200,
        within_theta: bool = False,
    ) -> None:
        super().__init__(space, alpha, family)
        found, dimension = response(family), parameter_dimension(space)
        tails = None if found is None else tails_of(family, found.sub_exponential)
        if found is None or tails is None or dimension is None:
            raise InvalidArgumentError(
                "family", family, "has no sub-exponential response in a space of finite dimension",
                "use Laplace or Weibull noise and Linear, or an RKHS with a domain",
            )  # fmt: skip
        self.bound, self.dimension, self._response = finite_bound(space, "this set"), dimension, found
        self.longest = longest_covariate(space) if longest is None else positive("longest", longest)
        if constants is None:
            constants = constants_for(
                tails, dimension, self.bound, self.alpha, self.longest, positive_integer("horizon", horizon)
            )
        if not isinstance(constants, SubExponentialConstants):
            raise InvalidArgumentError(
                "constants", constants, "are no constants", "use choose_constants, or leave them out"
            )
        largest = constants.nu**2 * float(tails.reach(np.array(constants.nu))) / self.longest
        if constants.ball > largest * (1 + 1e-9):
            raise InvalidArgumentError(
                "constants", constants, f"break K <= nu^2 / (gamma max|x|) = {largest:g}", "use choose_constants"
            )
        self.within_theta = flag("within_theta", within_theta)
        self.constants, self._sums = constants, LeastSquares()

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Laplace noise and uncensored survival times, in finite dimension."""
        check_model(family, space, alpha)
        found = response(family)
        if found is None or tails_of(family, found.sub_exponential) is None or not np.isfinite(space.bound):
            return None
        return None if parameter_dimension(space) is None else cls(space, alpha, family)

    def _refuse(self, X: Array, Y: Array) -> None:
        refuse_censored(Y)
        refuse_long(self.space, X, self.longest)

    def _remember(self, undo: Undo, phi: Embedded) -> None:
        undo.keep(self)
        self._sums.remember(undo)

    def _observe(self, phi: Embedded, y: Array) -> None:
        self._sums.add(phi.coordinates, self._response.of(y))

    def _snapshot(self) -> Ellipsoid:
        c = self.constants
        ridge = self._sums.ridge(c.nu, c.penalty)
        radius = c.radius(ridge.log_determinant, self.dimension, self.bound, self.alpha)
        return self._ellipsoid(
            centre=ridge.centre, precision=ridge.precision, outside=c.penalty, squared_radius=radius**2
        )


def refuse_long(space: Space, X: Array, longest: float) -> None:
    """Raise for covariates longer than the constants were made for."""
    lengths = np.linalg.norm(X, axis=1) if not hasattr(space, "diagonal") else np.sqrt(space.diagonal(X))
    if (lengths > longest * (1 + 1e-9)).any():
        index = int(np.argmax(lengths))
        raise InvalidArgumentError(
            f"x[{index}]", X[index], f"is longer than {longest:g}, for which the constants were chosen",
            "rescale the covariates or pass longest=",
        )  # fmt: skip
