r"""Functions in a reproducing kernel Hilbert space: z = f(x) = <f, k_x> with |f| <= bound.

**Exact without features.** The likelihood sees f only through its values at the points observed, so everything happens
in the span of their sections k_p, plus, for a query x, the one direction of k_x outside that span (the representer
theorem). :mod:`~likeset.spaces.kernel_basis` keeps an orthonormal basis of the span.

**Numerical rank.** Duplicates, near-duplicates and smooth kernels on fine grids keep the basis small: a section that
lies in the span up to a relative 1e-12 (in the square) adds no vector. Nothing is dropped: queries keep their part
outside the span, observations are charged for theirs (:mod:`likeset._solver.charge`), so bands and sets stay outer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import EPS, Array
from likeset.arguments import positive, positive_integer, real_array, rows
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.parts import worked_out
from likeset.spaces.kernel_basis import RKHSBasis
from likeset.spaces.kernel_settings import kernel_from_settings, kernel_settings
from likeset.spaces.menu import Menu

Kernel = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class NormReport:
    """The norm of a function given by its values, and how it depends on the jitter added to the kernel matrix.

    norm         of the interpolant of least norm, on the numerical range of the kernel matrix
    unexplained  length of the part of the values outside that range, relative to their length: not small means that
                 no function of the space takes these values, whatever its norm
    jitters, norms   v'(K + jitter I)^-1 v, square-rooted: a plateau is a norm one can believe
    """

    norm: float
    unexplained: float
    jitters: Array
    norms: Array

    def __float__(self) -> float:
        return self.norm


class RKHS:
    """Functions f with |f|_k <= bound; ``kernel`` is any k(X, Y) -> matrix, scikit-learn's kernel objects first of all.

    Parameters
    ----------
    kernel   positive semi-definite, with k(X, Y) of shape (len(X), len(Y)); no noise term (that is the family's part)
    bound    B: the promise |f*|_k <= B about the truth. ``norm`` helps to choose it
    domain   the points on which functions live, shape (m,) or (m, dim); ``contains`` and ``log_ratio`` take function
             values on it. ``None``: any point may be observed and asked for
    dim      number of input coordinates, when there is no domain to tell it

    If you know neither kernel nor bound, ``kernel=None`` makes a :class:`~likeset.spaces.menu.Menu` of such spaces, to
    be used with ``AnyOf``. ``box``, ``height`` and ``length_scales`` belong to it and are explained there.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> import likeset as ls
    >>> space = RKHS(RBF(0.2), bound=2.0, domain=np.linspace(0, 1, 50))
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.1), space)
    >>> seq.update([0.0, space.domain[10, 0]], [0.3, 0.8])
    >>> low, high = seq.set.interval(space.domain)            # a band over the whole domain
    >>> bool(np.all(low < high))
    True
    """

    def __new__(
        cls,
        kernel: Kernel | None = None,
        bound: float | None = None,
        domain: Any = None,
        dim: int | None = None,
        box: Any = None,
        height: float | None = None,
        length_scales: Any = None,
    ) -> Any:
        """Without a kernel, a menu of spaces; otherwise this space."""
        given = {"box": box, "height": height, "length_scales": length_scales}
        options = {name: value for name, value in given.items() if value is not None}
        if kernel is not None and options:
            name = next(iter(options))
            raise InvalidArgumentError(
                name, options[name], "belongs to a menu of kernels, and a kernel is given",
                "leave it out, or pass kernel=None",
            )  # fmt: skip
        if kernel is None and cls is RKHS and (options or domain is not None):
            if bound is not None or dim is not None:
                raise InvalidArgumentError(
                    "kernel", None, "comes with a bound or a number of coordinates, and a menu has its own",
                    "pass RKHS(kernel=None, domain=..., height=...), or a kernel",
                )  # fmt: skip
            return Menu(domain, **options)
        return super().__new__(cls)

    def __init__(
        self,
        kernel: Kernel | None = None,
        bound: float | None = None,
        domain: Any = None,
        dim: int | None = None,
        box: None = None,
        height: None = None,
        length_scales: None = None,
    ) -> None:
        # What belongs to a menu has been refused, if it was anything.
        if kernel is None or not callable(kernel):
            raise InvalidArgumentError("kernel", kernel, "is not callable", "pass k(X, Y), e.g. RBF(0.1)")
        if bound is None:
            raise InvalidArgumentError(
                "bound", None, "is missing", "pass bound=, a promise about the norm, or kernel=None for a menu of both"
            )
        self.kernel = kernel
        self.bound = positive("bound", bound)
        self.domain: Array | None = None
        if domain is not None:
            array = real_array("domain", domain)
            array = array.reshape(-1, 1) if array.ndim <= 1 else array
            if array.ndim != 2 or len(array) == 0:
                raise ShapeError("domain", domain, f"has shape {array.shape}", "pass points as rows, shape (m, dim)")
            self.domain = np.ascontiguousarray(array)
        self.dim = positive_integer("dim", dim if dim is not None else 1 if self.domain is None else array.shape[1])
        if self.domain is not None and self.domain.shape[1] != self.dim:
            raise ShapeError("dim", dim, f"does not fit a domain of shape {self.domain.shape}", "leave dim out")
        self.place_of = {} if self.domain is None else {p.tobytes(): i for i, p in enumerate(self.domain)}
        if self.domain is not None and len(self.place_of) < len(self.domain):
            raise InvalidArgumentError("domain", domain, "has repeated points", "pass each point once (np.unique)")
        self._spectrum: tuple[Array, Array] | None = None
        self.domain_gram, self.domain_correlation = np.zeros((0, 0)), np.zeros((0, 0))
        self.domain_diagonal = np.zeros(0)
        if self.domain is None:
            self._checked_gram(np.linspace(0.1, 0.9, 4 * self.dim).reshape(4, self.dim))
        else:
            self.domain_gram = self._checked_gram(self.domain)
            self._refuse_zeros(self.domain, "domain")
            self.domain_diagonal = self.diagonal(self.domain)
            lengths = np.sqrt(self.domain_diagonal)
            self.domain_correlation = self.domain_gram / np.outer(lengths, lengths)

    def __repr__(self) -> str:
        where = f"dim={self.dim}" if self.domain is None else f"domain of {len(self.domain)} points"
        return f"RKHS({self.kernel!r}, bound={self.bound:g}, {where})"

    def settings(self) -> dict[str, Any] | None:
        """Constructor arguments; None for a kernel that only its author can rebuild."""
        described = kernel_settings(self.kernel)
        if described is None:
            return None
        domain = None if self.domain is None else self.domain.tolist()
        return {"kernel": described, "bound": self.bound, "domain": domain, "dim": self.dim}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> RKHS:
        """The inverse of ``settings``."""
        return cls(**{**settings, "kernel": kernel_from_settings(settings["kernel"])})

    @property
    def covariate_shape(self) -> tuple[int, ...]:
        """(dim,)."""
        return (self.dim,)

    def covariates(self, x: Any, name: str = "x") -> Array:
        """Points of the domain, or any points when there is none; k(x, x) must be positive."""
        array = rows(name, x, self.dim)
        if self.domain is not None:
            if not self._is_domain(array):
                self._refuse_strangers(array, name)
            return array  # k(x, x) > 0 was checked for the domain
        self._refuse_zeros(array, name)
        return array

    def correlation(self, x: Array, y: Array) -> Array:
        """k(x, y) / sqrt(k(x, x) k(y, y)) for all pairs of rows."""
        return np.asarray(self.kernel(x, y)) / np.sqrt(np.outer(self.diagonal(x), self.diagonal(y)))

    @worked_out
    def rank(self) -> int | None:
        """An upper bound of the numerical rank of the functions on the domain; None without one."""
        if self.domain is None:
            return None
        from scipy.linalg.lapack import dpstrf  # pivoted: it finds every direction above rounding

        return int(dpstrf(self.domain_gram, tol=EPS * float(self.domain_diagonal.max()), lower=1)[2])

    def start(self) -> RKHSBasis:
        """The empty basis."""
        return RKHSBasis.empty(self)

    def restore(self, state: dict[str, Array]) -> RKHSBasis:
        """The basis whose ``state`` this is; ValueError unless it reproduces this space's kernel."""
        return RKHSBasis.restored(self, state)

    def gram(self, x: Array, y: Array) -> Array:
        """k(x, y) as a plain matrix."""
        if len(x) == 0 or len(y) == 0:
            return np.zeros((len(x), len(y)))
        return np.asarray(self.kernel(x, y), dtype=np.float64)

    def diagonal(self, x: Array) -> Array:
        """k(x, x) of every row."""
        if hasattr(self.kernel, "diag"):
            return np.asarray(self.kernel.diag(x), dtype=np.float64)
        return np.array([self.gram(x[i : i + 1], x[i : i + 1])[0, 0] for i in range(len(x))])

    def places(self, points: Array) -> NDArray[np.intp]:
        """Numbers of domain points."""
        if self._is_domain(points):
            return np.arange(len(points))
        raw, size = points.tobytes(), points.itemsize * self.dim
        return np.array([self.place_of[raw[i : i + size]] for i in range(0, len(raw), size)], dtype=np.intp)

    def values_on_domain(self, values: Any, name: str = "theta") -> Array:
        """Check function values on the domain; one row per function."""
        if self.domain is None:
            raise InvalidArgumentError(
                "domain", None, "is needed to say what function values mean", "give RKHS(..., domain=points)"
            )
        array = real_array(name, values)
        return rows(name, array.reshape(1, -1) if array.ndim == 1 else array, len(self.domain))

    def values_at(self, values: Any, x: Array, name: str = "theta") -> Array:
        """f(x) of functions given by their values on the domain, one row per function: read off, exact."""
        return np.ascontiguousarray(self.values_on_domain(values, name)[:, self.places(x)])

    def norms(self, values: Array) -> Array:
        """|f|_k of every row of values on the domain, rounded down: no function of the ball is taken to be outside.

        The square is v'(K + e I)^-1 v, with e the size of the rounding errors of K's eigenvalues.
        """
        _, vectors = self._domain_spectrum()
        with SingleThreadedBlas():
            squares = (values @ vectors) ** 2
        return np.asarray(np.sqrt(squares @ self._inverse_spectrum))

    def norm(self, values: Any) -> NormReport:
        """The RKHS norm of a function from its values on the domain: is the bound B large enough?

        >>> from sklearn.gaussian_process.kernels import RBF
        >>> space = RKHS(RBF(0.06), bound=4.0, domain=np.linspace(0, 1.2, 64))
        >>> x = space.domain[:, 0]
        >>> report = space.norm(-(1.4 - 3 * x) * np.sin(18 * x))
        >>> round(report.norm, 2)                                  # larger than the bound of 4
        4.09
        >>> bool(report.norms[0] > report.norms[2] > report.norms[4])   # and no plateau: jitter hides it
        True
        """
        row = self.values_on_domain(values)
        eigenvalues, vectors = self._domain_spectrum()
        projected = (row @ vectors)[0]
        kept = eigenvalues > 0
        unexplained = float(np.linalg.norm(projected[~kept])) / max(float(np.linalg.norm(row)), 1e-300)
        jitters = eigenvalues.max() * 10.0 ** np.arange(-14, -1, 2)
        norms = np.array([np.sqrt(np.sum(projected**2 / (eigenvalues + jitter))) for jitter in jitters])
        explained = unexplained <= 1e-6
        return NormReport(float(self.norms(row)[0]) if explained else np.inf, unexplained, jitters, norms)

    def _is_domain(self, points: Array) -> bool:
        return self.domain is not None and points.shape == self.domain.shape and bool((points == self.domain).all())

    def _refuse_strangers(self, points: Array, name: str) -> None:
        assert self.domain is not None
        for i, point in enumerate(points):
            if point.tobytes() not in self.place_of:
                nearest = self.domain[int(np.argmin(((self.domain - point) ** 2).sum(axis=1)))]
                raise InvalidArgumentError(
                    f"{name}[{i}]", point, "is not a point of the domain", f"the nearest one is {nearest}"
                )

    def _refuse_zeros(self, points: Array, name: str) -> None:
        zero = ~(self.diagonal(points) > 0)
        if zero.any():
            i = int(np.argmax(zero))
            raise InvalidArgumentError(
                f"{name}[{i}]", points[i], "has k(x, x) = 0", "every function is zero there; leave the point out"
            )

    def _domain_spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of the kernel matrix of the domain, zero below numerical rank, and eigenvectors."""
        if self._spectrum is None:
            assert self.domain is not None
            values, vectors = np.linalg.eigh(self.domain_gram)
            self._spectrum = np.where(values > len(values) * EPS * values[-1], values, 0.0), vectors
        return self._spectrum

    @worked_out
    def _inverse_spectrum(self) -> Array:
        """1 / (eigenvalue + e), with e the size of the rounding errors of eigenvalues."""
        eigenvalues, _ = self._domain_spectrum()
        return 1.0 / (eigenvalues + len(eigenvalues) * EPS * eigenvalues[-1])

    def _refuse_other_dimensions(self) -> None:
        """A kernel with one length scale per coordinate must have as many as points have coordinates."""
        told: Any = getattr(self.kernel, "get_params", None)  # of scikit-learn's kernels
        parameters = told() if type(self.kernel).__module__.startswith("sklearn.") else {}
        for name, value in parameters.items():
            scales = np.size(value) if name.endswith("length_scale") else 1
            if scales not in (1, self.dim):
                raise InvalidArgumentError(
                    "kernel", self.kernel, f"has {scales} length scales and points have {self.dim} coordinates",
                    f"pass dim={scales}, or a domain with {scales} columns, or one length scale",
                )  # fmt: skip

    def _checked_gram(self, points: Array) -> Array:
        """k of all pairs of points, symmetric to the last bit; refuses what is no covariance kernel on them."""
        n = len(points)
        self._refuse_other_dimensions()
        try:
            gram = self.gram(points, points.copy())
            diagonal = self.diagonal(points) if gram.shape == (n, n) else np.zeros(0)
        except Exception as error:
            raise InvalidArgumentError(
                "kernel", self.kernel, f"failed on {n} points ({type(error).__name__}: {error})",
                "k(X, Y) must return a matrix of shape (len(X), len(Y)) for arrays of points",
            ) from error  # fmt: skip
        if gram.shape != (n, n) or not np.isfinite(gram).all():
            raise InvalidArgumentError(
                "kernel", self.kernel, f"returned shape {gram.shape} for {n} points or non-finite values",
                "k(X, Y) must return a finite matrix of shape (len(X), len(Y))",
            )  # fmt: skip
        scale = np.abs(gram).max()
        if not np.abs(gram - gram.T).max() <= 1e-10 * scale or not _is_psd(gram, 1e-8 * scale):
            raise InvalidArgumentError(
                "kernel", self.kernel, "is not symmetric positive semi-definite", "pass a covariance kernel"
            )
        if diagonal.shape != (n,) or not np.allclose(diagonal, np.diag(gram), rtol=1e-10, atol=0.0):
            raise InvalidArgumentError(
                "kernel", self.kernel, "has a diagonal that is not k(x, x), as with a noise kernel",
                "leave WhiteKernel out: noise is described by the family",
            )  # fmt: skip
        return np.asarray(0.5 * (gram + gram.T))


def _is_psd(matrix: Array, tolerance: float) -> bool:
    """Whether a symmetric matrix has no eigenvalue below -tolerance."""
    try:
        np.linalg.cholesky(matrix + tolerance * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True
