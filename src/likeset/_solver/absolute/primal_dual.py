r"""Optimality conditions of sums of absolute values with a level and a ball, and their Newton system.

Two problems share one Newton system. With theta = centre + delta, z_i = x_i'delta and offsets p_i,

    support   max  a'delta                      subject to  G(delta) <= allowance, |theta| <= radius
    minimum   min  G(delta) + ridge |theta|^2   subject to                         |theta| <= radius

    G(delta) = slope'delta + sum_i w_i |p_i - z_i|.

Split every residual into the parts above and below the prediction, p_i - z_i = r_i - t_i with r, t >= 0.
The level reads  slope'delta + sum_i w_i (r_i + t_i) + s = allowance  with s >= 0. The multipliers are

    lam   of the level (fixed at 1 in the minimum problem),
    u_i   of the split, |u_i| <= lam w_i, kept as the pair  lam w_i - u_i (of r)  and  lam w_i + u_i (of t),
    y     of the ball, in the second-order cone.

The pair keeps multipliers close to their limits accurate; its sum stays 2 lam w_i at steps of any length.
At the optimum the stationarity residual  a - lam slope + sum_i u_i x_i + y_1 - 2 ridge theta  vanishes and
so do all products of a variable and its multiplier. Newton's method aims at products equal to mu, for a mu
that falls to 0 (Mehrotra's predictor and corrector). Eliminating what is local to a point, then lam, leaves

    M d_delta = right-hand side,
    M = sum_k (sum_{i of k} h_i) x_k x_k'  +  ball block  +  2 ridge I  +  border border' / border_scale,

so an iteration costs O(points) scalar work and one d x d factorisation over the *distinct* covariates.
Eliminating lam before factorising matters: at a vertex cut out by d - 1 points and the level, M without its
last term is nearly singular.

Several problems that differ in the direction a are solved side by side, one in each *lane*. Arrays over
dimensions are (d, lanes), for loops that treat all lanes alike (see :mod:`~likeset._solver.linalg.dense`); arrays over
points and covariates, which are long, are (lanes, n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset._solver.linalg.dense import inner
from likeset._typing import Array, IntArray

LANES_FOR_PAIRS = 8  # with fewer, a matrix product is not faster
MOST_PAIRS = 2**20  # products kept; more would not stay in a cache


class Problem(NamedTuple):
    """The data of G, the level and the ball.

    owner           the row of X that each point belongs to, sorted
    starts          the points of row k are starts[k] to starts[k + 1] - 1
    level_is_free   True for the support problem, False for the minimum problem (lam = 1)
    """

    X: Array
    Xt: Array
    owner: IntArray
    starts: IntArray
    offsets: Array
    weights: Array
    slope: Array
    centre: Array
    allowance: float
    radius: float
    ridge: float
    level_is_free: bool


class Iterate(NamedTuple):
    """Primal and dual variables of all lanes; the same type holds Newton directions.

    delta             step from the centre, (d, lanes)
    parts             r, then t: the parts of the residuals above and below the prediction, (lanes, 2n)
    duals             lam w - u, then lam w + u: their multipliers, (lanes, 2n)
    ball, dual_ball   (radius, theta) and its multiplier y, (d + 1, lanes)
    level             lam, s, (2, lanes)
    """

    delta: Array
    parts: Array
    duals: Array
    ball: Array
    dual_ball: Array
    level: Array


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution.

    Two numbers per point, first for r, then for t, (lanes, 2n):
    inverse_parts, inverse_duals   reciprocals (divisions are slow)
    ratios      alpha = r / (lam w - u), then beta = t / (lam w + u)
    shares      h alpha, then h beta; they sum to 1
    goals       the products to be reached
    aims        the step of r and t towards these products if the multipliers stayed as they are
    One number per point, (lanes, n):
    stiffness   h = 1 / (alpha + beta)
    misfit      p - z - (r - t)
    force       what drives u
    One number per covariate, (lanes, K):
    row_stiffness, border_rows, rows
    Per dimension, (d, lanes), and M (d, d, lanes):
    M, inverse  the Newton matrix, then its Cholesky factor; reciprocals of its diagonal
    border      column of lam
    gradient    stationarity residual
    cone_...    scaling point w of the ball's cone, W y, goal of the scaled product, and scratch, (d + 1, lanes)
    scalars     border_scale, level misfit, eta, 1 / eta, goal of lam s, scratch, scratch, (7, lanes)
    The sum of h x x':
    pairs       products x_ki x_kj with i <= j, (d (d + 1) / 2, K): one matrix product sums up all lanes. With few lanes
                summing one by one is faster, and there are no pairs, (0, K)
    packed      the sums, (d (d + 1) / 2, lanes)
    one_scaled, one_gram   scratch for one lane
    """

    inverse_parts: Array
    inverse_duals: Array
    ratios: Array
    shares: Array
    goals: Array
    aims: Array
    stiffness: Array
    misfit: Array
    force: Array
    row_stiffness: Array
    border_rows: Array
    rows: Array
    pairs: Array
    packed: Array
    one_scaled: Array
    one_gram: Array
    M: Array
    inverse: Array
    border: Array
    gradient: Array
    cone_point: Array
    cone_dual: Array
    cone_goal: Array
    cone_a: Array
    cone_b: Array
    scalars: Array


@inner
def new_iterate(d: int, n: int, lanes: int) -> Iterate:
    """An iterate of zeros for dimension d and n points."""
    parts, ball = np.zeros((2, lanes, 2 * n)), np.zeros((2, d + 1, lanes))
    return Iterate(np.zeros((d, lanes)), parts[0], parts[1], ball[0], ball[1], np.zeros((2, lanes)))


@inner
def pair_products(Xt: Array) -> Array:
    """The products x_ki x_kj with i <= j, one row per pair."""
    d, n_rows = Xt.shape
    pairs = np.empty((d * (d + 1) // 2, n_rows))
    row = 0
    for i in range(d):
        for j in range(i, d):
            for k in range(n_rows):
                pairs[row, k] = Xt[i, k] * Xt[j, k]
            row += 1
    return pairs


@inner
def new_workspace(Xt: Array, n: int, lanes: int) -> Workspace:
    """Scratch memory for the covariates in the columns of Xt and n points."""
    d, n_rows = Xt.shape
    n_pairs = d * (d + 1) // 2
    many = lanes >= LANES_FOR_PAIRS and n_pairs * n_rows <= MOST_PAIRS
    pairs = pair_products(Xt) if many else np.zeros((0, n_rows))
    doubles, points, rows = np.zeros((6, lanes, 2 * n)), np.zeros((3, lanes, n)), np.zeros((3, lanes, n_rows))
    vectors, cone = np.zeros((3, d, lanes)), np.zeros((5, d + 1, lanes))
    return Workspace(
        doubles[0],
        doubles[1],
        doubles[2],
        doubles[3],
        doubles[4],
        doubles[5],
        points[0],
        points[1],
        points[2],
        rows[0],
        rows[1],
        rows[2],
        pairs,
        np.zeros((n_pairs, lanes)),
        np.zeros((d, n_rows)),
        np.zeros((d, d)),
        np.zeros((d, d, lanes)),
        vectors[0],
        vectors[1],
        vectors[2],
        cone[0],
        cone[1],
        cone[2],
        cone[3],
        cone[4],
        np.zeros((7, lanes)),
    )
