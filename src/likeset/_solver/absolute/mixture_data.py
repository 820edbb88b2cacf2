r"""Optimality conditions of window mixtures of absolute values.

With theta = centre + delta and z_b = x_b'delta the function is

    Phi(theta) = log sum_k exp m_k,     m_k = height_k + sum_{b in W_k} [ l_b z_b + sum_{i of b} u_i |p_i - z_b| ].

Two problems share one Newton system (:mod:`~likeset._solver.absolute.mixture_system`):

    support   max  a'delta      subject to  Phi <= level, |theta| <= bound
    minimum   min  level        subject to  Phi <= level, |theta| <= bound         (a = 0)

As in ``primal_dual`` residuals are split, p_i - z_b = r_i - t_i with r, t >= 0. The log-sum-exp is
taken apart by its own multipliers. With v_k > 0 the multiplier of window k, lam = sum_k v_k that of Phi <= level,

    s_k = level + log(v_k / lam) - m_k >= 0,        v_k s_k = 0          (voices v_k / lam = exp(m_k - level))
    |nu_i| <= u_i w_b,  w_b = sum_{k: b in W_k} v_k,  kept as the pair  u_i w_b - nu_i (of r),  u_i w_b + nu_i (of t)
    a - sum_b w_b l_b x_b + sum_i nu_i x_i + y_1 = 0,  y the ball's multiplier in the second-order cone,

and all products (variable times multiplier) vanish at the optimum. Newton's method aims at products equal to mu > 0:
a window far below the level then is an inactive constraint like any other, and only log(v_k / lam) is not linear.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset._typing import Array, IntArray, Mask
from likeset.compiling import inner

BALL_SHARE = 0.1


BORDER, SPREAD, ROWS, LENGTHS, PULLS = 0, 1, 2, 3, 4
WINDOW_MISFIT, WINDOW_AIMS, ROOTS, DIRECTION, SOLVED, SUM = 0, 1, 2, 3, 4, 5
GRADIENT, ALONG, DIRECTIONS = 0, 1, 2
GAP, STILL, LENGTH, TARGET, REACHABLE = 0, 1, 2, 3, 4
PATH, COUNT = 0, 1
DIVISOR, PUSHED = 0, 1


class Problem(NamedTuple):
    """The data of Phi and the ball.

    owner        the row of X that each point belongs to, sorted
    starts       the points of row b are starts[b] to starts[b + 1] - 1
    masks        (W, K): one where covariate b belongs to window k; masks_t its transpose
    holders      windows of covariate b, in order: holders[first_holder[b] : first_holder[b + 1]]
    minimising   True for the minimum problem, False for the support problem
    """

    X: Array
    Xt: Array
    owner: IntArray
    starts: IntArray
    offsets: Array
    weights: Array
    slopes: Array
    masks: Array
    masks_t: Array
    first_holder: IntArray
    holders: IntArray
    heights: Array
    centre: Array
    bound: float
    minimising: bool


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution.

    pairs, singles   per point, see :mod:`~likeset._solver.absolute.points`
    cones, eta       of the ball, see :mod:`~likeset._solver.absolute.ball_cone`
    row_stiffness    h_b, with W ones behind, (lanes, K + W)
    rows             per covariate, (5, lanes, K): BORDER e_b, SPREAD sigma_b, and scratch: ROWS, LENGTHS, PULLS w_b
    windows          per window, (6, lanes, W): WINDOW_MISFIT of s, WINDOW_AIMS, ROOTS sqrt(v), DIRECTION y, SOLVED
                     U'^-1 sqrt(v) R, and scratch: SUM
    upper            (lanes, W, W + d + 1): the factor U of sqrt(v) E sqrt(v) = U'U, and beside it Z = U'^-1 sqrt(v) B
                     and U'^-1 sqrt(v)
    vectors          (3, d, lanes): GRADIENT, the stationarity residual; ALONG B'y; DIRECTIONS, the a
    of_lanes         (5, lanes): GAP, the sum of the products; STILL, zeros; LENGTH, of the step taken; TARGET and
                     REACHABLE products of one iteration
    turns            (2, lanes): PATH that a lane works on, -1 for none; COUNT of its iterations
    scalars          (2, lanes): DIVISOR of y y', PUSHED y'R
    M                the Newton matrix, packed, then its Cholesky factor (:mod:`~likeset._solver.linalg.lanes`)
    joined           X', and beside it Z' of one lane, (d, K + W)
    scaled, line, point, g, lost   scratch
    """

    pairs: Array
    singles: Array
    cones: Array
    eta: Array
    row_stiffness: Array
    rows: Array
    windows: Array
    upper: Array
    vectors: Array
    of_lanes: Array
    turns: IntArray
    scalars: Array
    M: Array
    joined: Array
    scaled: Array
    line: Array
    point: Array
    g: Array
    lost: Mask


@inner()
def ball_weight(problem: Problem) -> float:
    """How many of the others the ball's product is worth on the central path.

    With the weight of one among hundreds the analytic centre would lie next to the sphere, and paths be bent there.
    """
    return max(1.0, BALL_SHARE * (2.0 * problem.weights.size + problem.heights.size))


def new_workspace(problem: Problem, lanes: int) -> Workspace:
    """Scratch memory for one problem."""
    K, d = problem.X.shape
    n, W = problem.weights.size, problem.heights.size
    joined, row_stiffness = np.zeros((d, K + W)), np.zeros((lanes, K + W))
    joined[:, :K], row_stiffness[:, K:] = problem.Xt, 1.0
    return Workspace(
        np.zeros((6, lanes, 2 * n)),
        np.zeros((3, lanes, n)),
        np.zeros((5, d + 1, lanes)),
        np.zeros((6, lanes)),
        row_stiffness,
        np.zeros((5, lanes, K)),
        np.zeros((6, lanes, W)),
        np.zeros((lanes, W, W + d + 1)),
        np.zeros((3, d, lanes)),
        np.zeros((5, lanes)),
        np.zeros((2, lanes), dtype=np.int64),
        np.zeros((2, lanes)),
        np.zeros((d * (d + 1) // 2, lanes)),
        joined,
        np.zeros((d, K + W)),
        np.zeros(d),
        np.zeros(d),
        np.zeros(d),
        np.zeros(lanes, dtype=np.bool_),
    )
