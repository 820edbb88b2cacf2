r"""Simulated worlds to play in: who pays what, and what is observed.

An environment knows the truth. ``arms`` are covariates, ``z`` their true linear predictors, y is drawn from
``family`` given z, and regret is counted in ``reward(z)``:

    noise       z        reward counted in regret
    gaussian    r(x)     r
    laplace     r(x)     r
    poisson     r(x)     mean count exp(r)
    bernoulli   r(x)     success probability 1 / (1 + exp(-r))
    survival    -r(x)    r: log-Weibull log-times of shape 2, the hazard falls where r is high, E[log T] = (r - 0.577)/2
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice, generator, positive, positive_integer, real_array, seed_number
from likeset.bandits.arms import index_among
from likeset.bandits.rewards import INCREASING, Reward, as_reward
from likeset.errors import InvalidArgumentError, PieceError, ShapeError
from likeset.extras import optional_packages
from likeset.families import Bernoulli, Family, Gaussian, Laplace, LogWeibull, Poisson
from likeset.families.base import checked_family
from likeset.sequence import ConfidenceSequence
from likeset.spaces import RKHS, Linear

PAPER_BOUND_1D = 4.0
"""B of the paper's 1-D experiment; the function's norm on the grid is 4.17, so it excludes the truth by a little."""

PAPER_BOUND_CAMELBACK = 2.0
"""B of the paper's Camelback experiment; the function's norm on the grid is 7.70, so it excludes the truth."""

NORM_1D, NORM_CAMELBACK = 4.1702, 7.7023
"""Norms of the paper's functions on its grids, rounded up. Computed with 160 digits (``tests/test_bandits.py`` does it
again): the kernel matrix is singular in double precision, which sees 4.09 of the 4.1702."""

NOISES = ("gaussian", "laplace", "poisson", "survival", "bernoulli")
SURVIVAL_SHAPE = 2.0
_MOST_POINTS = 4096
_MATRIX = "the kernel matrix of the domain would not fit into memory"


@dataclass(frozen=True)
class Environment:
    """A fixed set of arms with a known truth.

    name      for tables and legends
    family    the law of y given z
    space     the model, bound included; whether the truth keeps it is ``well_specified``
    arms      covariates, shape (m, dim)
    z         true linear predictor of each arm
    theta     the truth as ``set.contains`` takes it: a vector (Linear), values on the domain (RKHS)
    reward    what regret is counted in, with its direction; pass it on: ``UCB(seq, env.arms, reward=env.reward)``
    function  z at any covariates (rows), where it is known beyond the arms
    true_norm the norm of the truth, where it is known better than double precision can tell
    """

    name: str
    family: Family
    space: Any
    arms: Array
    z: Array
    theta: Array
    reward: Reward = INCREASING
    function: Callable[[Array], Array] | None = None
    true_norm: float | None = None

    def __repr__(self) -> str:
        return f"<Environment {self.name}: {len(self.arms)} arms, {self.family!r}, {self.space!r}>"

    @property
    def rewards(self) -> Array:
        """Mean reward of every arm, as counted in regret."""
        return self.reward(self.z)

    @property
    def best(self) -> int:
        """The arm with the highest reward (the first of them)."""
        return int(np.argmax(self.rewards))

    @property
    def norm(self) -> float:
        """|theta|: the norm of the vector, or of the interpolant of least norm on the domain.

        Unless ``true_norm`` is known, the latter is computed in double precision, which sees at most the truth.
        """
        if self.true_norm is not None:
            return self.true_norm
        if isinstance(self.space, RKHS):
            return self.space.norm(self.theta).norm
        return float(np.linalg.norm(self.theta))

    @property
    def well_specified(self) -> bool:
        """Whether the truth lies in Theta. If not, no guarantee holds, and a set may become empty."""
        return self.norm <= self.space.bound

    def sample(self, index: int, rng: np.random.Generator) -> Any:
        """One observation of an arm; survival: a (log time, event) pair."""
        number = index_among("index", index, len(self.z))
        return self.family.sample(self.z[number : number + 1], rng)[0]

    def sequence(self, alpha: float = 0.1, **options: Any) -> ConfidenceSequence:
        """A ``ConfidenceSequence`` for this environment's family and space; options are passed on."""
        return ConfidenceSequence(self.family, self.space, alpha, **options)

    def offer(self, rng: np.random.Generator) -> Environment:
        """The arms of the next round: always the same ones here."""
        return self


@dataclass(frozen=True)
class ChangingArms:
    """Contexts: a linear model whose arms are drawn anew, uniformly on the unit sphere, every round."""

    family: Family
    space: Linear
    theta: Array
    n_arms: int
    reward: Reward = INCREASING

    @property
    def well_specified(self) -> bool:
        """Whether the truth lies in Theta."""
        return float(np.linalg.norm(self.theta)) <= self.space.bound

    def sequence(self, alpha: float = 0.1, **options: Any) -> ConfidenceSequence:
        """A ``ConfidenceSequence`` for this environment's family and space; options are passed on."""
        return ConfidenceSequence(self.family, self.space, alpha, **options)

    def offer(self, rng: np.random.Generator) -> Environment:
        """The arms of the next round."""
        arms = _sphere(self.n_arms, self.space.dim, generator(rng))
        return Environment("contexts", self.family, self.space, arms, arms @ self.theta, self.theta, self.reward)


# -- functions -------------------------------------------------------------------------------------------------------


def from_function(
    f: Callable[[Array], Array],
    domain: Any,
    kernel: Any,
    bound: float | None = None,
    family: Family | None = None,
    reward: Any = "increasing",
    name: str = "own function",
    true_norm: float | None = None,
) -> Environment:
    """An environment from your own z = f(x), vectorised over rows of x (over numbers if the domain is 1-D).

    ``bound=None`` takes the norm of f on the domain plus 2 %, rounded up to one decimal, so that the truth is inside.
    ``true_norm`` is the norm where you know it exactly; smooth functions on fine grids have more than can be computed.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> env = from_function(lambda x: np.sin(3 * x), np.linspace(0, 1, 20), RBF(0.5), family=Poisson(), reward="mean")
    >>> env.well_specified, env.best
    (True, 10)
    """
    if not callable(f):
        raise InvalidArgumentError("f", f, "is not callable", "pass a vectorised function of x")
    family = Gaussian(0.1) if family is None else checked_family(family)
    if not isinstance(name, str):
        raise InvalidArgumentError("name", name, "is not a name", "pass a string")
    true_norm = None if true_norm is None else positive("true_norm", true_norm)
    points = real_array("domain", domain)
    flat = points.ndim <= 1

    def at(x: Array) -> Array:
        rows = np.asarray(x, dtype=np.float64)
        try:
            return np.asarray(f(rows.reshape(-1) if flat else rows), dtype=np.float64)
        except Exception as error:
            raise PieceError(
                f"the function {f!r} of the environment failed ({type(error).__name__}: {error}); it must be "
                "vectorised over rows of x and return numbers."
            ) from error

    z = real_array("f(domain)", at(points))
    space = RKHS(kernel, 1.0 if bound is None else bound, domain=points)
    assert space.domain is not None
    if z.shape != (len(space.domain),):
        raise ShapeError(
            "f(domain)", z, f"has shape {z.shape}", f"return one value for each of {len(space.domain)} points"
        )
    if bound is None:
        space = RKHS(kernel, _containing_bound(space, z, true_norm), domain=points)
    return Environment(name, family, space, np.asarray(space.domain), z, z, as_reward(reward, family), at, true_norm)


def paper_1d(noise: str = "gaussian", bound: float | None = None, points: int = 64) -> Environment:
    """r(x) = -(1.4 - 3x) sin(18x) on [0, 1.2], squared-exponential kernel of length 0.06, noise scale 0.15.

    ``bound=None`` is 4.2 for the 64 points of the paper, which holds the truth (norm 4.17); the paper's own is
    ``PAPER_BOUND_1D``.

    >>> paper_1d("poisson")
    <Environment paper 1-D, poisson: 64 arms, Poisson(), RKHS(RBF(length_scale=0.06), bound=4.2, domain of 64 points)>
    """
    grid = np.linspace(0.0, 1.2, positive_integer("points", points, _MOST_POINTS, _MATRIX))
    known = NORM_1D if points == 64 else None
    return _noisy("paper 1-D", lambda x: -(1.4 - 3 * x) * np.sin(18 * x), grid, _bell(0.06), bound, noise, 0.15, known)


def camelback(noise: str = "gaussian", bound: float | None = None, points: int = 10) -> Environment:
    """The six-hump camelback on a grid of [-0.5, 0.5]^2, inputs times (4, 2), output -f/5; noise scale 0.10.

    Squared-exponential kernel of length 0.2. ``bound=None`` holds the truth; the paper's own is
    ``PAPER_BOUND_CAMELBACK``, which does not.
    """
    side = np.linspace(-0.5, 0.5, positive_integer("points", points, 64, _MATRIX))
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)

    def height(x: Array) -> Array:
        u, v = 4 * x[:, 0], 2 * x[:, 1]
        humps = (4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (-4 + 4 * v**2) * v**2
        return np.asarray(-humps / 5)

    known = NORM_CAMELBACK if points == 10 else None
    return _noisy("camelback", height, grid, _bell(0.2), bound, noise, 0.10, known)


def random_function(
    seed: int,
    noise: str = "gaussian",
    bound: float = 3.0,
    domain: Any = None,
    kernel: Any = None,
    centres: int = 12,
    scale: float = 0.15,
) -> Environment:
    """A function drawn from the RKHS ball: a random combination of sections k(c, .), scaled to 0.9 of the bound."""
    grid = np.linspace(0.0, 1.0, 50) if domain is None else real_array("domain", domain)
    kernel = _bell(0.15) if kernel is None else kernel
    bound, scale = positive("bound", bound), positive("scale", scale)
    space = RKHS(kernel, bound, domain=grid)
    assert space.domain is not None
    rng = generator(seed_number("seed", seed))
    centres = positive_integer("centres", centres)
    chosen = space.domain[rng.choice(len(space.domain), size=min(centres, len(space.domain)), replace=False)]
    shares = rng.standard_normal(len(chosen))
    length = math.sqrt(float(shares @ space.gram(chosen, chosen) @ shares))

    def height(x: Array) -> Array:
        rows = np.asarray(x, dtype=np.float64).reshape(-1, chosen.shape[1])
        return np.asarray(space.gram(rows, chosen) @ shares * (0.9 * bound / length))

    return _noisy(f"random function {seed}", height, grid, kernel, bound, noise, scale)


# -- linear models ---------------------------------------------------------------------------------------------------


def linear(
    dim: int = 5,
    family: Family | None = None,
    n_arms: int = 20,
    seed: int = 0,
    bound: float = 1.0,
    reward: Any = "increasing",
) -> Environment:
    """Arms uniform on the unit sphere of R^dim, theta in a random direction with 0.9 of the bound as its norm."""
    arms, theta, family = _drawn(dim, family, n_arms, seed, bound)
    space = Linear(dim, bound)
    return Environment(
        f"linear, dim {dim}", family, space, arms, arms @ theta, theta, as_reward(reward, family), lambda x: x @ theta
    )


def logistic(dim: int = 5, n_arms: int = 20, seed: int = 0, bound: float = 3.0) -> Environment:
    """A linear environment with successes and failures; regret in success probability."""
    return linear(dim, Bernoulli(), n_arms, seed, bound, reward="mean")


def contexts(
    dim: int = 5,
    family: Family | None = None,
    n_arms: int = 10,
    seed: int = 0,
    bound: float = 1.0,
    reward: Any = "increasing",
) -> ChangingArms:
    """Arms drawn anew every round, theta as in :func:`linear`."""
    _, theta, family = _drawn(dim, family, n_arms, seed, bound)
    return ChangingArms(family, Linear(dim, bound), theta, n_arms, as_reward(reward, family))


# -- pieces ----------------------------------------------------------------------------------------------------------


def _bell(length: float) -> Any:
    """The squared-exponential kernel, scikit-learn's: a sequence with it can be saved."""
    with optional_packages():
        from sklearn.gaussian_process.kernels import RBF
    return RBF(length)


def _noisy(
    name: str,
    r: Callable[[Array], Array],
    domain: Array,
    kernel: Any,
    bound: float | None,
    noise: str,
    scale: float,
    true_norm: float | None = None,
) -> Environment:
    """An environment whose reward function is r, under one of the NOISES."""
    settings: dict[str, tuple[Family, Any]] = {
        "gaussian": (Gaussian(scale), "increasing"),
        "laplace": (Laplace(scale), "increasing"),
        "poisson": (Poisson(), "mean"),
        "bernoulli": (Bernoulli(), "mean"),
        "survival": (LogWeibull(SURVIVAL_SHAPE), "decreasing"),
    }
    choice("noise", noise, NOISES)
    family, reward = settings[noise]
    sign = -1.0 if noise == "survival" else 1.0
    return from_function(lambda x: sign * r(x), domain, kernel, bound, family, reward, f"{name}, {noise}", true_norm)


def _containing_bound(space: RKHS, z: Array, true_norm: float | None) -> float:
    norm = space.norm(z).norm
    if not math.isfinite(norm):
        raise InvalidArgumentError(
            "f",
            "function values",
            "are taken by no function of the kernel's space",
            "choose a rougher kernel or give bound",
        )
    return max(math.ceil(10 * 1.02 * norm) / 10, math.ceil(10 * (true_norm or 0.0)) / 10, 0.1)


def _drawn(dim: int, family: Family | None, n_arms: int, seed: int, bound: float) -> tuple[Array, Array, Family]:
    dim, n_arms = positive_integer("dim", dim, 10**4), positive_integer("n_arms", n_arms, 10**5)
    bound, rng = positive("bound", bound), generator(seed_number("seed", seed))
    arms = _sphere(n_arms, dim, rng)
    return arms, 0.9 * bound * _sphere(1, dim, rng)[0], Gaussian(0.3) if family is None else checked_family(family)


def _sphere(count: int, dim: int, rng: np.random.Generator) -> Array:
    points = rng.standard_normal((count, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
