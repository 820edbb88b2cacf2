"""What a space is: where theta lives, and how covariates are embedded.

All computation happens in the span of the covariates seen so far. A basis turns x into coordinates in an
orthonormal basis of that span plus the length of the part of x outside it: outside the span the likelihood
is flat and only |theta| <= bound matters. Linear models and function spaces share the engine this way.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from likeset._typing import Array
from likeset.errors import InvalidArgumentError

IN_SPAN = 2.5e-6
"""Share of a covariate's length outside the span up to which it is bounded (times |theta|) rather than solved for."""


@runtime_checkable
class Basis(Protocol):
    """An immutable orthonormal basis of the span of the covariates seen so far."""

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        ...

    def coordinates(self, x: Array) -> tuple[Array, Array]:
        """Rows x -> (coordinates c (n, dimension), length r (n,) of the part outside the span, or a little more).

        Every parameter with |theta| <= B has coordinates t, and x'theta = c't + r u with |t|^2 + u^2 <= B^2; where r is
        at most ``IN_SPAN`` |x|, only with |t| <= B and |u| <= B.
        """
        ...

    def including(self, x: Array) -> Basis:
        """A basis whose span includes the row x; earlier coordinates stay valid, padded with zeros."""
        ...

    def values(self, theta: Any, x: Array, name: str = "theta") -> Array:
        """z of the user's parameters (checked; errors call them ``name``) at rows x, not by way of coordinates."""
        ...

    def norms(self, theta: Any) -> Array:
        """|theta| of the user's parameters, or a little less."""
        ...

    def project(self, theta: Any, name: str = "theta") -> Array:
        """Coordinates of the user's parameters on the span; good enough to start a solver from, not for bounds."""
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
        """The basis whose ``state`` this is; ValueError if it is not a basis of this space."""
        ...

    def settings(self) -> dict[str, Any] | None:
        """Constructor arguments, for saving; None if they cannot be written down."""
        ...


def checked_space(space: Any) -> Space:
    """The space, or a typed error."""
    if isinstance(space, type) or not isinstance(space, Space):
        raise InvalidArgumentError("space", space, "is not a space", "pass e.g. Linear(dim=3, bound=2.0)")
    return space
