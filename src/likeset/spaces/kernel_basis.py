r"""An orthonormal basis of the span of kernel sections, by Cholesky's method with a nugget, one row per new point.

    K_PP + E = L L',      c_x = L^-1 k(P, x),      a_x = L'^-1 c_x,      E = diag(e_p),  e_p about NUGGET k(p, p).

(All of it for sections scaled to length one, k(x, y) / sqrt(k(x, x) k(y, y)), so that kernels whose diagonal spans
orders of magnitude do as well; coordinates are scaled back.) The coordinates of a point p in P are its row of L, those
of any other point are c_x. What validity needs of them is one-sided: the functions described may be a few more than
those of the ball, never fewer.

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
by is charged to the likelihood (:mod:`likeset._solver.charge`), never dropped.

The Gram identity is checked for every new row, and L L' - K_PP >= SURE E whenever P has doubled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import EPS, Array
from likeset.errors import InvalidArgumentError, NumericalError
from likeset.parts import worked_out
from likeset.spaces.base import IN_SPAN

if TYPE_CHECKING:
    from likeset.spaces.rkhs import RKHS

RANK_TOLERANCE = 1.5e-12
NUGGET = 2.5e-14
SURE = 0.75  # share of the nugget that rounding leaves intact
LONG = 300.0  # |a_x| beyond which a point joins: what rounding does to the others grows with it
_ROW_ERROR = 64 * EPS  # of an entry of L L', relative to the diagonal
_INDEFINITE = 1e-11  # below minus this, joint_x is no rounding error: the kernel is wrong, or its values are


def nuggets(count: int) -> Array:
    """e_p of the first points to join, for sections of length one: rounding grows with the number, and so do they."""
    return np.asarray(NUGGET * np.maximum(1.0, np.arange(1, count + 1) / 64))


class SharedRows:
    """The points P and their rows of L, append-only, shared by every basis that is a prefix of them."""

    def __init__(self, capacity: int, dim: int, domain_size: int) -> None:
        self.points = np.zeros((capacity, dim))
        self.lengths = np.zeros(capacity)  # sqrt k(p, p)
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
        table.lengths[:n] = np.sqrt(space.diagonal(points)) if n else 0.0
        basis = cls(space, table, n)
        basis._verify(rounding=16.0)
        if n and m:
            expected = space.domain_correlation[:, space.places(points)]
            if not np.abs(on_domain @ factor.T - expected).max() <= 16.0 * _ROW_ERROR:
                raise ValueError("the coordinates of the domain do not reproduce the kernel")
        return basis

    def __deepcopy__(self, memo: dict[int, Any]) -> RKHSBasis:
        return self  # immutable: the table only grows, and a basis never looks beyond its own size

    def __reduce__(self) -> tuple[Any, ...]:
        return RKHSBasis, (self.space, self._copied(max(16, self._size)), self._size)

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        return self._size

    @property
    def points(self) -> Array:
        """The points P."""
        return self._table.points[: self._size]

    @worked_out
    def nuggets(self) -> Array:
        """e_p, for sections of length one."""
        return nuggets(self._size)

    @property
    def factor(self) -> Array:
        """L with K_PP + E = L L', for sections of length one."""
        return self._table.factor[: self._size, : self._size]

    @property
    def lengths(self) -> Array:
        """sqrt k(p, p)."""
        return self._table.lengths[: self._size]

    @worked_out
    def joined(self) -> Array:
        """Coordinates of the points P: L scaled back."""
        return np.asarray(self.lengths[:, None] * self.factor)

    def coordinates(self, x: Array) -> tuple[Array, Array]:
        """c_x, for points of P their row of L, and the length outside the span: joint, or apart where that is small."""
        if self.space.domain is not None:
            places = self.space.places(x)
            inside, outside = self._of_domain
            return inside[places], outside[places]
        lengths = np.sqrt(self.space.diagonal(x))
        with SingleThreadedBlas():
            sections = self.space.gram(self.points, x) / np.outer(self.lengths, lengths)
            inside = np.ascontiguousarray(self._solve(sections).T)
        squared = self._outside(inside)
        inside *= lengths[:, None]
        for i, point in enumerate(x):
            number = self._table.number_of.get(point.tobytes(), self._size)
            if number < self._size:
                inside[i], squared[i] = self.joined[number], 0.0
        return inside, lengths * np.sqrt(squared)

    def including(self, x: Array) -> RKHSBasis:
        """One more row, unless k_x is in the span to numerical rank."""
        section, diagonal = self._checked_section(x[None, :])
        with SingleThreadedBlas():
            inside = self._solve(section[:, None])[:, 0]
            rest = 1.0 - float(inside @ inside)
            if not rest >= -_INDEFINITE:
                self._refuse(x, "is not positive semi-definite, or its values are not accurate to rounding,")
            own_nugget = float(nuggets(self._size + 1)[-1])
            tolerance = max(RANK_TOLERANCE, 4.0 * own_nugget)
            if (1.0 - SURE) * rest <= tolerance:  # apart_x is at least that much
                squares = self._solve(inside[:, None], transposed=True)[:, 0] ** 2
                if rest - SURE * float(self.nuggets @ squares) <= tolerance and squares.sum() <= LONG**2:
                    return self
            error = float(np.abs(self.factor @ inside - section).max(initial=0.0))
            if not error <= _ROW_ERROR:
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
            values = self.space.values_on_domain(theta, name)[:, self._places] / self.lengths
            return np.ascontiguousarray(self._solve(values.T).T)

    def lift(self, coordinates: Array, outside: Array, x: Array) -> Array:
        """Functions as values on the domain; without a domain, at the points P and, last, at x itself."""
        if self.space.domain is None:
            at_points = coordinates @ self.joined.T
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

    @worked_out
    def _places(self) -> NDArray[np.intp]:
        """The numbers of the points P in the domain."""
        return self.space.places(self.points)

    @worked_out
    def _of_domain(self) -> tuple[Array, Array]:
        """Coordinates and lengths outside of all domain points."""
        inside, lengths = self._table.on_domain[:, : self._size], np.sqrt(self.space.domain_diagonal)
        squared = self._outside(inside)
        inside, places = lengths[:, None] * inside, self._places
        inside[places], squared[places] = self.joined, 0.0
        return inside, lengths * np.sqrt(squared)

    def _outside(self, inside: Array) -> Array:
        """joint_x, or apart_x where its root is well below IN_SPAN, of sections of length one."""
        if not self._size:
            return np.ones(len(inside))
        residual = 4.0 * EPS * math.sqrt(self._size)  # of a triangular solve, and of the kernel's values
        rest = np.maximum(1.0 - np.einsum("ij,ij->i", inside, inside), 0.0) + 4.0 * EPS
        squared = np.asarray(rest + 2.0 * residual * np.sqrt(rest / self.nuggets.min()))  # min e |a|^2 <= rest
        small = np.flatnonzero(squared <= 1e-6)
        if len(small):
            with SingleThreadedBlas():
                squares = self._solve(inside[small].T, transposed=True).T ** 2
            error = 4.0 * EPS + 2.0 * residual * np.sqrt(squares.sum(axis=1))
            apart = np.maximum(rest[small] - SURE * (squares @ self.nuggets), 0.0) + error
            squared[small] = np.where(apart <= (0.5 * IN_SPAN) ** 2, apart, rest[small] + error)
        return squared

    def _appended(self, x: Array, inside: Array, pivot: float, diagonal: float) -> RKHSBasis:
        table, n = self._table, self._size
        claim = object()
        if n == len(table.points) or table.claims.setdefault(n, claim) is not claim:
            table = self._copied(max(16, 2 * n))
            table.claims[n] = claim
        table.points[n], table.factor[n, :n], table.factor[n, n] = x, inside, pivot
        table.lengths[n] = math.sqrt(diagonal)
        if self.space.domain is not None:
            section = self.space.domain_correlation[:, self.space.places(x[None, :])[0]]
            table.on_domain[:, n] = (section - table.on_domain[:, :n] @ inside) / pivot
        table.number_of[x.tobytes()] = n
        return RKHSBasis(self.space, table, n + 1)

    def _copied(self, capacity: int) -> SharedRows:
        n, old = self._size, self._table
        table = SharedRows(capacity, self.space.dim, len(old.on_domain))
        table.points[:n], table.factor[:n, :n], table.lengths[:n] = self.points, self.factor, self.lengths
        table.on_domain[:, :n] = old.on_domain[:, :n]
        table.number_of = {point.tobytes(): i for i, point in enumerate(self.points)}
        return table

    def _checked_section(self, row: Array) -> tuple[Array, float]:
        """k(P, x) for sections of length one, and k(x, x); refuses a kernel that is not finite and symmetric there."""
        if self.space.domain is not None:  # checked as a whole
            place = self.space.places(row)[0]
            return self.space.domain_correlation[self._places, place], float(self.space.domain_diagonal[place])
        section, back = self.space.gram(self.points, row)[:, 0], self.space.gram(row, self.points)[0]
        diagonal, own = float(self.space.diagonal(row)[0]), float(self.space.gram(row, row.copy())[0, 0])
        if not (np.isfinite(section).all() and 0.0 < diagonal < math.inf and abs(own - diagonal) <= 1e-10 * diagonal):
            self._refuse(row[0], "is not finite, or has a diagonal of its own,")
        lengths = self.lengths * math.sqrt(diagonal)
        if not (np.abs(section - back) <= 1e-10 * lengths).all():
            self._refuse(row[0], "is not symmetric")
        return section / lengths, diagonal

    def _verify(self, rounding: float = 1.0) -> None:
        """Raise ValueError unless L L' - K_PP is at least SURE E, and no larger than nugget and rounding explain."""
        if not self._size:
            return
        with SingleThreadedBlas():
            gram = self.space.gram(self.points, self.points)
            surplus = self.factor @ self.factor.T - 0.5 * (gram + gram.T) / np.outer(self.lengths, self.lengths)
            try:
                np.linalg.cholesky(surplus / np.sqrt(np.outer(self.nuggets, self.nuggets)) - SURE * np.eye(self._size))
            except np.linalg.LinAlgError:
                raise ValueError("the factor of the basis does not dominate the kernel") from None
        if not np.abs(surplus).max() <= self.nuggets.max() + rounding * _ROW_ERROR:
            raise ValueError("the factor of the basis does not reproduce the kernel")

    def _refuse(self, x: Array, problem: str) -> None:
        raise InvalidArgumentError(
            "kernel", self.space.kernel, f"{problem} at x = {x} and the points seen before",
            "pass a covariance kernel; for a periodic one over many periods, reduce x modulo the period first",
        )  # fmt: skip

    def _solve(self, right: Array, transposed: bool = False) -> Array:
        """L^-1 right, or L'^-1 right."""
        if self._size == 0:
            return np.zeros((0, right.shape[1]))
        from scipy.linalg.lapack import dtrtrs  # what solve_triangular calls, for a tenth of its overhead

        return np.asarray(dtrtrs(self.factor, right, lower=1, trans=int(transposed))[0])


_REPORT = "nothing was recorded. Please report the kernel and the points"
