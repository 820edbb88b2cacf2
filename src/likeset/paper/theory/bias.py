r"""Bias of the FTRL estimate: what it would be without noise, exactly, and the bounds that need no truth.

    bias_x(theta_hat_t) = x'(theta_x - theta*),     theta_x = argmin sum_{s<t} E f_s(theta) + lambda |theta|^2

with f_s = -log p_theta(y_s|x_s) and the expectation under theta* (the paper's equation 5). theta_hat_t has seen the
observations *before* t, so ``x_past`` below are the covariates x_1, ..., x_{t-1}.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import one_row, positive, rows
from likeset.families import Gaussian
from likeset.families.base import Family
from likeset.paper.theory.geometry import Curvature, LogPartition, covariate_rows, solvable


def error_free_estimate(family: Family, x_past: Any, theta: Any, *, penalty: float) -> Array:
    r"""theta_x with  sum_s [A'(x_s'theta_x) - A'(x_s'theta*)] x_s + 2 lambda theta_x = 0.

    No constraint: |theta_x| <= |theta*|, so it lies in Theta by itself.

    >>> import likeset as ls
    >>> error_free_estimate(ls.Gaussian(1.0), [[1.0], [1.0]], [0.5], penalty=1.0)    # 2 / (2 + 2) of the truth
    array([0.25])
    """
    covariates = covariate_rows(x_past, "x_past")
    truth = one_row("theta", theta, covariates.shape[1])
    nu = 2.0 * positive("penalty", penalty)
    Z = LogPartition(family, covariates, nu=nu)
    return Z.inverse_gradient(Z.gradient(truth) - nu * truth)


def squared_bias(family: Family, x_past: Any, x: Any, theta: Any, *, penalty: float) -> Array:
    """bias_x^2 under the truth ``theta``, for every row of ``x`` (equation 5).

    >>> import likeset as ls
    >>> squared_bias(ls.Gaussian(1.0), [[1.0], [1.0]], [[1.0]], [0.5], penalty=1.0)
    array([0.0625])
    """
    past = covariate_rows(x_past, "x_past")
    points = rows("x", x, past.shape[1])
    difference = error_free_estimate(family, past, theta, penalty=penalty) - one_row("theta", theta, past.shape[1])
    return np.asarray((points @ difference) ** 2)


def worst_gaussian_squared_bias(x_past: Any, x: Any, *, sigma: float, penalty: float, bound: float) -> Array:
    r"""Largest squared bias over |theta*| <= B for Gaussian noise, in closed form:

        bias^2 = 4 lambda^2 B^2 x'V^-2 x,     V = sum_s x_s x_s' / sigma^2 + 2 lambda I.

    >>> worst_gaussian_squared_bias([[1.0], [1.0]], [[1.0]], sigma=1.0, penalty=1.0, bound=0.5)
    array([0.0625])
    """
    past = covariate_rows(x_past, "x_past")
    lam = positive("penalty", penalty)
    V = LogPartition(Gaussian(sigma), past, nu=2 * lam).hessian(np.zeros(past.shape[1]))
    solved = np.linalg.solve(solvable(V, "x_past", x_past), rows("x", x, past.shape[1]).T)
    return np.asarray(4 * lam**2 * positive("bound", bound) ** 2 * np.sum(solved**2, axis=0))


def bias_bound(family: Family, x_past: Any, x: Any, *, penalty: float, bound: float) -> Array:
    r"""Theorem 2:  bias_x^2 <= 2 lambda B^2 x'V^-1 x,   V = mu sum_{s<t} x_s x_s' + lambda I.

    >>> import likeset as ls
    >>> bias_bound(ls.Gaussian(1.0), [[1.0], [1.0]], [[1.0]], penalty=1.0, bound=0.5).round(4)
    array([0.1667])
    """
    return 2.0 * sharper_bias_bound(family, x_past, x, penalty=penalty, bound=bound)


def sharper_bias_bound(family: Family, x_past: Any, x: Any, *, penalty: float, bound: float) -> Array:
    r"""Half of Theorem 2, which its assumptions already give:  bias_x^2 <= lambda B^2 x'V^-1 x.

    With v = theta_x - theta* and V0 = V - lambda I, strong convexity says
    |v|^2_{V0} + 2 lambda |v|^2 <= -2 lambda v'theta* <= lambda |v|^2 + lambda |theta*|^2: |v|_V^2 <= lambda |theta*|^2.
    It is attained at an x orthogonal to the past with theta* along it.

    >>> import likeset as ls
    >>> sharper_bias_bound(ls.Gaussian(1.0), [[1.0, 0.0]], [[0.0, 1.0]], penalty=3.0, bound=0.5)    # B^2
    array([0.25])
    """
    past = covariate_rows(x_past, "x_past")
    points = rows("x", x, past.shape[1])
    mu = Curvature.of(family, bound, np.vstack([past, points])).mu
    return _bound(past, points, mu, positive("penalty", penalty), positive("bound", bound))


def bias_bound_as_printed(family: Family, x_past: Any, x: Any, *, penalty: float, bound: float) -> Array:
    r"""Theorem 2 with the printed index, V_t = V_{t-1} + mu x x': false for mu > lambda, already at the first step.

    There bias = x'theta* may be B, but the printed bound is 2 lambda B^2 / (lambda + mu).

    >>> import likeset as ls
    >>> past, new = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> bool(bias_bound_as_printed(ls.Gaussian(0.5), past, new, penalty=1.0, bound=1.0)[0]
    ...      < squared_bias(ls.Gaussian(0.5), past, new, [0.0, 1.0], penalty=1.0)[0])
    True
    """
    past = covariate_rows(x_past, "x_past")
    points = rows("x", x, past.shape[1])
    mu = Curvature.of(family, bound, np.vstack([past, points])).mu
    lam, B, bounds = positive("penalty", penalty), positive("bound", bound), np.empty(len(points))
    for i, row in enumerate(points):
        bounds[i] = 2.0 * _bound(np.vstack([past, row]), row[None, :], mu, lam, B)[0]
    return bounds


def _bound(past: Array, points: Array, mu: float, lam: float, B: float) -> Array:
    with np.errstate(over="ignore"):  # refused below
        V = mu * past.T @ past + lam * np.eye(past.shape[1])
    lengths = np.einsum("ij,ji->i", points, np.linalg.solve(solvable(V, "x_past", past), points.T))
    return np.asarray(lam * B**2 * lengths)
