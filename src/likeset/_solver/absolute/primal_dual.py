r"""Optimality conditions of sums of absolute values with a level and a ball, and their Newton system.

Two problems share one Newton system. With theta = centre + delta, z_i = x_i'delta and offsets p_i,

    support   max  a'delta                      subject to  G(delta) <= allowance, |theta| <= bound
    minimum   min  G(delta) + ridge |theta|^2   subject to                         |theta| <= bound

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
dimensions are (d, lanes), for loops that treat all lanes alike (see :mod:`~likeset._solver.linalg.lanes`); arrays over
points and covariates, which are long, are (lanes, n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset._solver.linalg.lanes import packed_indices
from likeset._typing import Array, IntArray, Mask

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
    bound: float
    ridge: float
    level_is_free: bool


SCALE, LEVEL_MISFIT, LEVEL_GOAL, LEVEL_FORCE, LEVEL_STEP = 0, 1, 2, 3, 4
ROW_STIFFNESS, BORDER_ROWS, ROWS = 0, 1, 2
BORDER, GRADIENT, DIRECTIONS = 0, 1, 2
GAP, STILL, LENGTH, MISFIT_LEFT, TARGET, PREDICTED, LONGEST, AFTER, CENTRED = 0, 1, 2, 3, 4, 5, 6, 7, 8
PATH, COUNT = 0, 1


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution.

    pairs, singles   per point, see :mod:`~likeset._solver.absolute.points`
    cones, eta       of the ball, see :mod:`~likeset._solver.absolute.ball_cone`
    level            of the equation of lam, (5, lanes): SCALE, its diagonal, s / lam + 4 sum_i w_i^2 h_i alpha_i
                     beta_i; LEVEL_MISFIT, how far it is from being met; LEVEL_GOAL, the product lam s to be reached;
                     LEVEL_FORCE, right-hand side; LEVEL_STEP, of lam
    rows             per covariate, (3, lanes, K): ROW_STIFFNESS, BORDER_ROWS, ROWS
    vectors          (3, d, lanes): BORDER, the column of lam; GRADIENT, the stationarity residual; DIRECTIONS, the a
    M                the Newton matrix, packed, then its Cholesky factor (:mod:`~likeset._solver.linalg.lanes`)
    products         x_ki x_kj with i <= j, (d (d + 1) / 2, K): one matrix product sums up h x x' in all lanes. With few
                     lanes summing one by one is faster, and there are none, (0, K)
    of_lanes         (9, lanes): GAP, the sum of the products; STILL, zeros; LENGTH, of the step taken; MISFIT_LEFT, of
                     the violations at the start; the rest belongs to one iteration
    turns            (2, lanes): PATH that a lane works on, -1 for none; COUNT of its iterations
    scaled, lost, line   scratch
    """

    pairs: Array
    singles: Array
    cones: Array
    eta: Array
    level: Array
    rows: Array
    vectors: Array
    M: Array
    products: Array
    of_lanes: Array
    turns: IntArray
    scaled: Array
    lost: Mask
    line: Array


def new_workspace(Xt: Array, n: int, lanes: int) -> Workspace:
    """Scratch memory for the covariates in the columns of Xt and n points."""
    d, n_rows = Xt.shape
    n_pairs = d * (d + 1) // 2
    products = np.empty((0, n_rows))
    if lanes >= LANES_FOR_PAIRS and n_pairs * n_rows <= MOST_PAIRS:
        first, second = packed_indices(d)
        products = Xt[first] * Xt[second]
    return Workspace(
        np.zeros((6, lanes, 2 * n)),
        np.zeros((3, lanes, n)),
        np.zeros((5, d + 1, lanes)),
        np.zeros((6, lanes)),
        np.ones((5, lanes)),  # SCALE is 1 in the minimum problem
        np.zeros((3, lanes, n_rows)),
        np.zeros((3, d, lanes)),
        np.zeros((n_pairs, lanes)),
        products,
        np.zeros((9, lanes)),
        np.full((2, lanes), -1),
        np.zeros((d, n_rows)),
        np.zeros(lanes, dtype=np.bool_),
        np.zeros(d),
    )
