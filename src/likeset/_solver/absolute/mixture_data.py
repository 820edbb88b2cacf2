r"""Optimality conditions of window mixtures of absolute values.

With theta = centre + delta and z_b = x_b'delta the function is

    Phi(theta) = log sum_k exp m_k,     m_k = height_k + sum_{b in W_k} [ l_b z_b + sum_{i of b} u_i |p_i - z_b| ].

Two problems share one Newton system (:mod:`~likeset._solver.absolute.mixture_system`):

    support   max  a'delta      subject to  Phi <= level, |theta| <= radius
    minimum   min  level        subject to  Phi <= level, |theta| <= radius         (a = 0)

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

from likeset._solver.linalg.dense import compiled
from likeset._typing import Array, IntArray

BALL_SHARE = 0.1


class Problem(NamedTuple):
    """The data of Phi and the ball.

    owner        the row of X that each point belongs to
    masks        (W, K): one where covariate b belongs to window k; masks_t its transpose
    holders      windows of covariate b, in order: holders[first_holder[b] : first_holder[b + 1]]
    minimising   True for the minimum problem, False for the support problem
    """

    X: Array
    Xt: Array
    owner: IntArray
    offsets: Array
    weights: Array
    slopes: Array
    masks: Array
    masks_t: Array
    first_holder: IntArray
    holders: IntArray
    heights: Array
    centre: Array
    radius: float
    minimising: bool


class Iterate(NamedTuple):
    """Primal and dual variables of all lanes; the same type holds Newton directions.

    delta             step from the centre, (d, lanes)
    parts, duals      r, then t, (lanes, 2n), and their multipliers
    slacks, voices    s and v, (lanes, W)
    ball, dual_ball   (radius, theta) and its multiplier y, (d + 1, lanes)
    level             (lanes,)
    """

    delta: Array
    parts: Array
    duals: Array
    slacks: Array
    voices: Array
    ball: Array
    dual_ball: Array
    level: Array


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution.

    Per point, (lanes, 2n) or (lanes, n): see :class:`likeset._solver.absolute.primal_dual.Workspace`.
    Per covariate, (lanes, K): row_stiffness h_b (with W ones behind), border e_b, spread sigma_b, and scratch.
    Per window, (lanes, W): misfit of s, aims, roots sqrt(v), direction y, solved U'^-1 sqrt(v) R, and scratch.
    upper, (lanes, W, W + d + 1): the factor U of sqrt(v) E sqrt(v) = U'U, and beside it Z = U'^-1 sqrt(v) B and
    U'^-1 sqrt(v).
    Per dimension, (d, lanes): gradient, along B'y; M (d, d, lanes) and the inverse of its pivots.
    """

    inverse_parts: Array
    inverse_duals: Array
    ratios: Array
    shares: Array
    aims: Array
    stiffness: Array
    misfit: Array
    force: Array
    row_stiffness: Array
    border: Array
    spread: Array
    rows: Array
    lengths: Array
    pulls: Array
    window_misfit: Array
    window_aims: Array
    roots: Array
    direction: Array
    solved: Array
    sums: Array
    upper: Array
    line: Array
    joined: Array
    scaled: Array
    gram: Array
    M: Array
    inverse: Array
    gradient: Array
    along: Array
    cone_point: Array
    cone_dual: Array
    cone_a: Array
    cone_b: Array
    divisor: Array
    eta: Array
    inverse_eta: Array
    pushed: Array


@compiled
def ball_weight(problem: Problem) -> float:
    """How many of the others the ball's product is worth on the central path.

    With the weight of one among hundreds the analytic centre would lie next to the sphere, and paths be bent there.
    """
    return max(1.0, BALL_SHARE * (2.0 * problem.weights.size + problem.heights.size))


@compiled
def new_iterate(d: int, n: int, W: int, lanes: int) -> Iterate:
    """An iterate of zeros for dimension d, n points and W windows."""
    parts, windows, ball = np.zeros((2, lanes, 2 * n)), np.zeros((2, lanes, W)), np.zeros((2, d + 1, lanes))
    return Iterate(
        np.zeros((d, lanes)), parts[0], parts[1], windows[0], windows[1], ball[0], ball[1], np.zeros(lanes)
    )  # fmt: skip


@compiled
def new_workspace(problem: Problem, lanes: int) -> Workspace:
    """Scratch memory for one problem."""
    K, d = problem.X.shape
    n, W = problem.weights.size, problem.heights.size
    pairs, points, rows = np.zeros((5, lanes, 2 * n)), np.zeros((3, lanes, n)), np.zeros((5, lanes, K))
    windows, vectors, cone = np.zeros((6, lanes, W)), np.zeros((3, d, lanes)), np.zeros((4, d + 1, lanes))
    scalars = np.zeros((4, lanes))
    joined = np.zeros((d, K + W))
    joined[:, :K] = problem.Xt
    return Workspace(
        pairs[0], pairs[1], pairs[2], pairs[3], pairs[4], points[0], points[1], points[2],
        np.ones((lanes, K + W)), rows[0], rows[1], rows[2], rows[3], rows[4],
        windows[0], windows[1], windows[2], windows[3], windows[4], windows[5],
        np.zeros((lanes, W, W + d + 1)), np.zeros(d), joined, np.zeros((d, K + W)),
        np.zeros((d, d)), np.zeros((d, d, lanes)), vectors[0], vectors[1], vectors[2],
        cone[0], cone[1], cone[2], cone[3], scalars[0], scalars[1], scalars[2], scalars[3],
    )  # fmt: skip
