"""What a space is: where theta lives, and how covariates are embedded.

All computation happens in the span of the covariates seen so far. A basis turns x into coordinates in an
orthonormal basis of that span plus the length of the part of x outside it: outside the span the likelihood
is flat and only |theta| <= bound matters. Linear models and function spaces share the engine this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likeset.errors import InvalidArgumentError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """One covariate as predictors and weightings see it.

    x            the covariate as the user gave it (one row)
    coordinates  in the orthonormal basis of the span, which includes x
    index        number of this distinct covariate, in order of first appearance
    """

    x: Array
    coordinates: Array
    index: int


@runtime_checkable
class Basis(Protocol):
    """An immutable orthonormal basis of the span of the covariates seen so far."""

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        ...

    def coordinates(self, x: Array) -> tuple[Array, Array]:
        """Rows x -> (coordinates (n, dimension), length (n,) of the part outside the span)."""
        ...

    def including(self, x: Array) -> Basis:
        """A basis whose span includes the row x; earlier coordinates stay valid, padded with zeros."""
        ...

    def parameters(self, theta: Any) -> tuple[Array, Array]:
        """User's parameters, checked -> (coordinates (n, dimension), norms (n,))."""
        ...

    def project(self, theta: Any, name: str = "theta") -> Array:
        """The coordinates alone, where norms are not needed; ``name`` is what errors call theta."""
        ...

    def lift(self, coordinates: Array, outside: Array, x: Array) -> Array:
        """Parameters from coordinates, plus ``outside`` times the unit vector of x's part outside the span."""
        ...

    def evaluate(self, coordinates: Array, outside: Array, x: Array, at: Array) -> Array:
        """Row by row, z at the covariate ``at`` of the parameter that ``lift`` would return."""
        ...

    def state(self) -> dict[str, Array]:
        """Everything needed to rebuild it bit for bit."""
        ...


@runtime_checkable
class Space(Protocol):
    """Theta = { theta : |theta| <= bound } and the embedding of covariates."""

    bound: float

    @property
    def covariate_shape(self) -> tuple[int, ...]:
        """Shape of one covariate, as recorded in the ledger."""
        ...

    def covariates(self, x: Any, name: str = "x") -> Array:
        """Check user-supplied covariates; an array with one row per covariate."""
        ...

    def start(self) -> Basis:
        """The basis before any covariate was seen."""
        ...

    def restore(self, state: dict[str, Array]) -> Basis:
        """The basis whose ``state`` this is."""
        ...

    def settings(self) -> dict[str, Any] | None:
        """Constructor arguments, for saving; None if they cannot be written down."""
        ...


def checked_space(space: Any) -> Space:
    """The space, or a typed error."""
    if isinstance(space, type) or not isinstance(space, Space):
        raise InvalidArgumentError("space", space, "is not a space", "pass e.g. Linear(dim=3, bound=2.0)")
    return space
