r"""Where the interior point starts: the maxima of a quadratic model of the set.

The absolute values smoothed as on the central path, with products mu and lam = 1, have the second derivatives
h_i = mu / (r_i^2 + t_i^2), and the ball's barrier -mu log(bound^2 - |theta|^2) / 2 has its own. Their sum M at a point
near the minimum makes the ellipsoid

    delta' M delta / 2 <= slack,      maximised by  delta = sqrt(2 slack / q) M^{-1} a,   q = a'M^{-1} a,

with value sqrt(2 slack q) and multiplier lam = sqrt(q / (2 slack)). Nothing here has to be accurate: the start decides
the number of iterations only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likeset._solver.absolute.primal_dual import Problem
from likeset._typing import EPS, Array

MODEL_WIDTH = 10.0  # the model smooths with this multiple of the products at the analytic centre
START_GAP = 3.0  # gap at the start relative to the value of the model
START_LENGTH = 0.9  # of the way to the model's maximum, and no more than
BALL_LENGTH = 0.7  # of the way to the sphere
NEAR_SPHERE = 0.05  # relative distance of the centre to the sphere below which it moves inwards
_LEAST_ROOM = 1e-290  # where squares of outcomes are lost
SLACK_SPENT = 0.1  # part of the slack of the level that this may cost


def interior_centre(minimiser: Array, bound: float, relative_slack: float) -> Array:
    """The minimiser, moved towards 0 if it is close to the sphere.

    F is convex: a step of relative length s towards 0 raises it by s (F(0) - min F) at most. ``relative_slack`` is
    the slack divided by that difference.
    """
    room = 1.0 - float(np.linalg.norm(minimiser)) / bound
    shrink = min(NEAR_SPHERE - room, SLACK_SPENT * relative_slack)
    return minimiser * (1.0 - shrink) if shrink > 0.0 else minimiser


@dataclass(frozen=True)
class QuadraticModel:
    """M, and what turns it into starting points; n_products of the interior point."""

    M: Array
    slack: float
    centre: Array
    bound: float
    n_products: float

    def starts(self, A: Array) -> tuple[Array, Array, Array]:
        """Starting points delta for the rows of A, with their lam and mu."""
        try:
            directions = np.linalg.solve(self.M, A.T).T
        except np.linalg.LinAlgError:  # singular within rounding
            directions = np.zeros(A.shape)
        q = np.einsum("ij,ij->i", A, directions)
        lost = np.logical_not(q > 0.0)  # to rounding: any start will do
        if lost.any():
            directions[lost] = A[lost] / self.M.diagonal().max()
            q[lost] = np.maximum(np.einsum("ij,ij->i", A[lost], directions[lost]), _LEAST_ROOM)
        directions *= np.sqrt(2.0 * self.slack / q)[:, None]
        # Way to the sphere, |centre + t direction| = bound, by the form of the root that does not cancel.
        square = np.maximum(np.einsum("ij,ij->i", directions, directions), _LEAST_ROOM)
        inward = directions @ self.centre
        room = max(self.bound**2 - float(self.centre @ self.centre), EPS * self.bound**2)
        root = np.hypot(inward, np.sqrt(square) * np.sqrt(room))  # squares of far ends may overflow
        way = np.where(inward > 0.0, room / (root + inward), (root - inward) / square)
        lengths = np.minimum(START_LENGTH, BALL_LENGTH * way)
        mu = START_GAP * np.sqrt(2.0 * self.slack * q) / self.n_products
        return np.ascontiguousarray(lengths[:, None] * directions), np.sqrt(q / (2.0 * self.slack)), mu


def quadratic_model(problem: Problem, slack: float) -> QuadraticModel:
    """The model around the problem's centre."""
    n_products = 2.0 * problem.weights.size + 2.0
    mu = MODEL_WIDTH * slack / n_products
    share = mu / problem.weights
    root = np.hypot(share, problem.offsets)
    # r + t = share + root and r - t = offset:  r^2 + t^2 = ((r + t)^2 + (r - t)^2) / 2
    h = 2.0 * mu / ((share + root) ** 2 + problem.offsets**2)
    M = (problem.Xt * np.bincount(problem.owner, h, minlength=len(problem.X))) @ problem.X
    centre = problem.centre
    room = max(problem.bound**2 - float(centre @ centre), EPS * problem.bound**2, _LEAST_ROOM)
    M += (2.0 * mu / room) * np.outer(centre, centre / room)
    M[np.diag_indices_from(M)] += mu / room  # no more than that: it is all that thin sets have in flat directions
    return QuadraticModel(M, slack, centre, problem.bound, n_products)
