r"""An orthonormal basis of the span of kernel sections, by Cholesky's method with a nugget, one row per new point.

    K_PP + E = L L',      c_x = L^-1 k(P, x),      a_x = L'^-1 c_x,      E = diag(e_p),  e_p about NUGGET k(p, p).

The coordinates of a point p in P are its row of L, those of any other point are c_x. What validity needs of them is
one-sided: the functions described may be a few more than those of the ball, never fewer.

**Why a nugget.** Without one, rows that are nearly dependent amplify rounding without limit: points that came in order,
left to right, made products of coordinates wrong by 10^5. With it L L' is positive definite with room to spare, for
which the method is backward stable in every order: L L' - K_PP is E up to a few units in the last place, hence
positive definite. So there is a contraction A with A'l_p = k_p. A function f with |f| <= B has coordinates t = A f,
|t| <= B, and f(p) = l_p't exactly. At any other point f(x) = c_x't + d_x, where, with the tiny residual
r = L c_x - k(P, x),

    |t|^2 + d_x^2 / joint_x <= B^2,        joint_x = k(x, x) - |c_x|^2 + 2 |a_x| |r|,
    |d_x| <= B sqrt(apart_x),              apart_x = joint_x - SURE sum_p e_p a_xp^2  >=  |k_x - A'c_x|^2,

for A'c_x = sum_p a_xp k_p, whose squared length is |c_x|^2 - a_x'(L L' - K_PP) a_x, and L L' - K_PP is at least SURE E.

A point joins P if apart_x exceeds ``RANK_TOLERANCE`` k(x, x) (or four nuggets), or if a_x is long. Duplicates and
smooth kernels on fine grids thus keep P small, and with it the cost of every query; where points come in order each is
extrapolated from those before, and more of them join than in a mixed order. What a point that does not join sticks out
by is charged to the likelihood (:mod:`likeset.support.charge`), never dropped.

The Gram identity is checked for every new row, and L L' - K_PP >= SURE E whenever P has doubled.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset.errors import InvalidArgumentError, NumericalError
from likeset.spaces.base import IN_SPAN, Array
from likeset.support.threads import SingleThreadedBlas

if TYPE_CHECKING:
    from likeset.spaces.rkhs import RKHS

EPS = float(np.finfo(np.float64).eps)
RANK_TOLERANCE = 1e-12
NUGGET = 2.5e-14
SURE = 0.75  # share of the nugget that rounding leaves intact
LONG = 300.0  # |a_x| beyond which a point joins: what rounding does to the others grows with it
_ROW_ERROR = 64 * EPS  # of an entry of L L', relative to the diagonal
_INDEFINITE = 1e-8  # a joint_x that is negative by more than this share of k(x, x) is no rounding error


def nuggets_of(diagonal: Array, first: int = 0) -> Array:
    """e_p of points with these k(p, p), numbered from ``first``: rounding grows with the number, and so do they."""
    return np.asarray(NUGGET * diagonal * np.maximum(1.0, np.arange(first + 1, first + len(diagonal) + 1) / 64))


class SharedRows:
    """The points P and their rows of L, append-only, shared by every basis that is a prefix of them."""

    def __init__(self, capacity: int, dim: int, domain_size: int) -> None:
        self.points = np.zeros((capacity, dim))
        self.diagonal = np.zeros(capacity)
        self.factor = np.zeros((capacity, capacity))
        self.on_domain = np.zeros((domain_size, capacity))  # coordinates of every domain point, as if none had joined
        self.number_of: dict[bytes, int] = {}
        # Who may write a row: copies of a sequence share the table, and may live in different threads. A claim is one
        # atomic step and not a lock, which an interrupt could leave locked; a row claimed in vain is never used.
        self.claims: dict[int, object] = {}


class RKHSBasis:
    """The first ``size`` rows of a shared table: an immutable basis that grows without copying."""

    def __init__(self, space: RKHS, table: SharedRows, size: int) -> None:
        self.space, self._table, self._size = space, table, size

    @classmethod
    def empty(cls, space: RKHS) -> RKHSBasis:
        """No point seen yet."""
        return cls(space, SharedRows(16, space.dim, len(space.place_of)), 0)

    @classmethod
    def restored(cls, space: RKHS, state: dict[str, Array]) -> RKHSBasis:
        """The basis whose ``state`` this is; ValueError unless it reproduces the kernel."""
        points, factor, on_domain = (np.ascontiguousarray(state[name]) for name in ("points", "factor", "on_domain"))
        n, m = len(points), len(space.place_of)
        if points.shape != (n, space.dim) or factor.shape != (n, n) or on_domain.shape != (m, n):
            raise ValueError("the arrays of the basis do not fit together")
        if not (np.isfinite(factor).all() and (np.diag(factor) > 0).all() and not np.triu(factor, 1).any()):
            raise ValueError("the factor of the basis is damaged")
        table = SharedRows(max(16, n), space.dim, m)
        table.points[:n], table.factor[:n, :n], table.on_domain[:, :n] = points, factor, on_domain
        table.number_of = {point.tobytes(): i for i, point in enumerate(points)}
        if len(table.number_of) < n or (m and not all(key in space.place_of for key in table.number_of)):
            raise ValueError("the points of the basis are repeated, or not in the domain")
        table.diagonal[:n] = space.diagonal(points) if n else 0.0
        basis = cls(space, table, n)
        basis._verify(rounding=16.0)
        if n and m:
            expected = space.domain_gram[:, space.places(points)]
            if not np.abs(on_domain @ factor.T - expected).max() <= 16.0 * _ROW_ERROR * basis._largest:
                raise ValueError("the coordinates of the domain do not reproduce the kernel")
        return basis

    def __deepcopy__(self, memo: dict[int, Any]) -> RKHSBasis:
        return self  # immutable: the table only grows, and a basis never looks beyond its own size

    def __reduce__(self) -> tuple[Any, ...]:
        return RKHSBasis.restored, (self.space, {name: array.copy() for name, array in self.state().items()})

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        return self._size

    @property
    def points(self) -> Array:
        """The points P."""
        return self._table.points[: self._size]

    @cached_property
    def nuggets(self) -> Array:
        """e_p."""
        return nuggets_of(self._table.diagonal[: self._size])

    @cached_property
    def _largest(self) -> float:
        """The largest k(p, p)."""
        return float(self._table.diagonal[: self._size].max(initial=0.0))

    @property
    def factor(self) -> Array:
        """L with K_PP + E = L L'."""
        return self._table.factor[: self._size, : self._size]

    def coordinates(self, x: Array) -> tuple[Array, Array]:
        """c_x, for points of P their row of L, and the length outside the span: joint, or apart where that is small."""
        if self.space.domain is not None:
            places = self.space.places(x)
            inside, outside = self._of_domain
            return inside[places], outside[places]
        diagonal = self.space.diagonal(x)
        with SingleThreadedBlas():
            inside = np.ascontiguousarray(self._solve(self.space.gram(self.points, x)).T)
        squared = self._outside(inside, diagonal)
        for i, point in enumerate(x):
            number = self._table.number_of.get(point.tobytes(), self._size)
            if number < self._size:
                inside[i], squared[i] = self.factor[number], 0.0
        return inside, np.sqrt(squared)

    def including(self, x: Array) -> RKHSBasis:
        """One more row, unless k_x is in the span to numerical rank."""
        section, diagonal = self._checked_section(x[None, :])
        with SingleThreadedBlas():
            inside = self._solve(section[:, None])[:, 0]
            rest = diagonal - float(inside @ inside)
            if not rest >= -_INDEFINITE * diagonal:
                self._refuse(x, "is not positive semi-definite")
            own_nugget = float(nuggets_of(np.array([diagonal]), self._size)[0])
            tolerance = max(RANK_TOLERANCE * diagonal, 4.0 * own_nugget)
            if (1.0 - SURE) * rest <= tolerance:  # apart_x is at least that much
                squares = self._solve(inside[:, None], transposed=True)[:, 0] ** 2
                if rest - SURE * float(self.nuggets @ squares) <= tolerance and squares.sum() <= LONG**2:
                    return self
            error = float(np.abs(self.factor @ inside - section).max(initial=0.0))
            if not error <= _ROW_ERROR * math.sqrt(diagonal * max(self._largest, diagonal)):
                raise NumericalError(f"a row of the kernel's factor is off by {error:.2g}; {_REPORT}")
            grown = self._appended(x, inside, math.sqrt(max(rest, 0.0) + own_nugget), diagonal)
        if grown.dimension >= 16 and grown.dimension & (grown.dimension - 1) == 0:
            try:
                grown._verify()
            except ValueError as found:
                raise NumericalError(f"{found}; {_REPORT}") from None
        return grown

    def values(self, theta: Any, x: Array, name: str = "theta") -> Array:
        """f(x) of functions given by their values on the domain: read off, exact."""
        return self.space.values_at(theta, x, name)

    def norms(self, theta: Any) -> Array:
        """|f|_k, rounded down."""
        return self.space.norms(self.space.values_on_domain(theta))

    def project(self, theta: Any, name: str = "theta") -> Array:
        """Coordinates t with l_p't = f(p) on P, for functions given by their values on the domain."""
        with SingleThreadedBlas():
            return np.ascontiguousarray(self._solve(self.space.values_at(theta, self.points, name).T).T)

    def lift(self, coordinates: Array, outside: Array, x: Array) -> Array:
        """Functions as values on the domain; without a domain, at the points P and, last, at x itself."""
        if self.space.domain is None:
            at_points = coordinates @ self.factor.T
            return np.column_stack([at_points, self.evaluate(coordinates, outside, x, x)]) if x.shape[1] else at_points
        everywhere, _ = self._of_domain
        values = coordinates @ everywhere.T
        if np.any(outside):
            here, length = self.coordinates(x)
            rest = self.space.domain_gram[self.space.places(x)] - here @ everywhere.T
            values = values + np.divide(outside, length, out=np.zeros_like(outside), where=length > 0)[:, None] * rest
        return values

    def evaluate(self, coordinates: Array, outside: Array, x: Array, at: Array) -> Array:
        """Row by row, the value at ``at`` of the function with these coordinates and component outside the span."""
        there, _ = self.coordinates(at)
        values = np.einsum("ij,ij->i", coordinates, there)
        if np.any(outside):
            here, length = self.coordinates(x)
            section = np.array([self.space.gram(x[i : i + 1], at[i : i + 1])[0, 0] for i in range(len(x))])
            rest = section - np.einsum("ij,ij->i", here, there)
            values = values + outside * np.divide(rest, length, out=np.zeros_like(rest), where=length > 0)
        return values

    def state(self) -> dict[str, Array]:
        """The points P, the factor, and the domain's coordinates."""
        on_domain = self._table.on_domain[:, : self._size]
        return {"points": self.points, "factor": self.factor, "on_domain": on_domain}

    # -- inside -------------------------------------------------------------------------------------------------

    @cached_property
    def _of_domain(self) -> tuple[Array, Array]:
        """Coordinates and lengths outside of all domain points."""
        inside = self._table.on_domain[:, : self._size].copy()
        squared = self._outside(inside, self.space.domain_diagonal)
        joined = self.space.places(self.points)
        inside[joined], squared[joined] = self.factor, 0.0
        return inside, np.sqrt(squared)

    def _outside(self, inside: Array, diagonal: Array) -> Array:
        """joint_x, or apart_x where its root is below IN_SPAN of the section's length."""
        if not self._size:
            return diagonal.copy()
        residual = (
            4.0 * EPS * math.sqrt(self._size) * self._largest
        )  # of a triangular solve, and of the kernel's values
        rest = np.maximum(diagonal - np.einsum("ij,ij->i", inside, inside), 0.0) + 4.0 * EPS * diagonal
        squared = np.asarray(rest + 2.0 * residual * np.sqrt(rest / self.nuggets.min()))  # min e |a|^2 <= rest
        small = np.flatnonzero(squared <= 1e-6 * diagonal)
        if len(small):
            with SingleThreadedBlas():
                squares = self._solve(inside[small].T, transposed=True).T ** 2
            error = 4.0 * EPS * diagonal[small] + 2.0 * residual * np.sqrt(squares.sum(axis=1))
            apart = np.maximum(rest[small] - SURE * (squares @ self.nuggets), 0.0) + error
            squared[small] = np.where(apart <= IN_SPAN**2 * diagonal[small], apart, rest[small] + error)
        return squared

    def _appended(self, x: Array, inside: Array, pivot: float, diagonal: float) -> RKHSBasis:
        table, n = self._table, self._size
        claim = object()
        if n == len(table.points) or table.claims.setdefault(n, claim) is not claim:
            table = self._copied(max(16, 2 * n))
            table.claims[n] = claim
        table.points[n], table.factor[n, :n], table.factor[n, n] = x, inside, pivot
        table.diagonal[n] = diagonal
        if self.space.domain is not None:
            section = self.space.domain_gram[:, self.space.places(x[None, :])[0]]
            table.on_domain[:, n] = (section - table.on_domain[:, :n] @ inside) / pivot
        table.number_of[x.tobytes()] = n
        return RKHSBasis(self.space, table, n + 1)

    def _copied(self, capacity: int) -> SharedRows:
        n, old = self._size, self._table
        table = SharedRows(capacity, self.space.dim, len(old.on_domain))
        table.points[:n], table.factor[:n, :n], table.diagonal[:n] = self.points, self.factor, old.diagonal[:n]
        table.on_domain[:, :n] = old.on_domain[:, :n]
        table.number_of = {point.tobytes(): i for i, point in enumerate(self.points)}
        return table

    def _checked_section(self, row: Array) -> tuple[Array, float]:
        """k(P, x) and k(x, x); refuses a kernel that is not finite and symmetric there."""
        if self.space.domain is not None:  # checked as a whole
            place = self.space.places(row)[0]
            return self.space.domain_gram[self.space.places(self.points), place], float(
                self.space.domain_diagonal[place]
            )
        section, back = self.space.gram(self.points, row)[:, 0], self.space.gram(row, self.points)[0]
        diagonal, own = float(self.space.diagonal(row)[0]), float(self.space.gram(row, row.copy())[0, 0])
        if not (np.isfinite(section).all() and 0.0 < diagonal < math.inf and abs(own - diagonal) <= 1e-10 * diagonal):
            self._refuse(row[0], "is not finite, or has a diagonal of its own,")
        if len(section) and not np.abs(section - back).max() <= 1e-10 * max(diagonal, self._largest):
            self._refuse(row[0], "is not symmetric")
        return section, diagonal

    def _verify(self, rounding: float = 1.0) -> None:
        """Raise ValueError unless L L' - K_PP is at least SURE E, and no larger than nugget and rounding explain."""
        if not self._size:
            return
        with SingleThreadedBlas():
            gram = self.space.gram(self.points, self.points)
            surplus = self.factor @ self.factor.T - 0.5 * (gram + gram.T)
            try:
                np.linalg.cholesky(surplus / np.sqrt(np.outer(self.nuggets, self.nuggets)) - SURE * np.eye(self._size))
            except np.linalg.LinAlgError:
                raise ValueError("the factor of the basis does not dominate the kernel") from None
        if not np.abs(surplus).max() <= self.nuggets.max() + rounding * _ROW_ERROR * self._largest:
            raise ValueError("the factor of the basis does not reproduce the kernel")

    def _refuse(self, x: Array, problem: str) -> None:
        raise InvalidArgumentError(
            "kernel", self.space.kernel, f"{problem} at x = {x} and the points seen before", "pass a covariance kernel"
        )

    def _solve(self, right: Array, transposed: bool = False) -> Array:
        """L^-1 right, or L'^-1 right."""
        if self._size == 0:
            return np.zeros((0, right.shape[1]))
        from scipy.linalg.lapack import dtrtrs  # what solve_triangular calls, for a tenth of its overhead

        return np.asarray(dtrtrs(self.factor, right, lower=1, trans=int(transposed))[0])


_REPORT = "nothing was recorded. Please report the kernel and the points"
