r"""Windows of covariates: which observations speak about which part of the parameter.

A window W_k is a set of covariates fixed before the first observation. The mask 1{x_s in W_k} is then a predictable
weight in {0, 1}, so

    M_k(theta) = prod_{s: x_s in W_k} q_s(y_s|x_s) / p_theta(y_s|x_s)

is a martingale at the truth like the ratio of all data, and so is any average  R = sum_k pi_k M_k.  The set
{ R <= 1/alpha } is convex, has the same guarantee at all times, and near the centre of a window pays only for what had
to be learnt there: docs/windows.md derives it in one page.

    symbol   here
    W_k      window k: a row of ``Membership.masks``, one column per distinct covariate seen
    pi_k     share of window k in the error level
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from likeset._solver.problem import WindowTable
from likeset._typing import Array, Mask
from likeset.arguments import positive_integer, real_array, real_number
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.spaces.base import Space, checked_space

MAX_WINDOWS = 256


@runtime_checkable
class Correlated(Protocol):
    """A space that can say how similar two covariates are."""

    def correlation(self, x: Array, y: Array) -> Array:
        """Between -1 and 1 for every pair of rows."""
        ...


class Windows:
    """Windows around centres, { x : |correlation(centre, x)| >= correlation }, with shares of the error level.

    The correlation is the kernel's, k(c, x) / sqrt(k(c, c) k(x, x)), or x'c / (|x| |c|) in a linear model.

    Parameters
    ----------
    centres      covariates, one window around each (rows; for one-dimensional inputs a plain list will do)
    correlation  how similar a covariate must be to belong to a window, in (0, 1)
    joint_share  share of the error level kept for one more window of *all* covariates, in [0, 1)
    shares       of the windows around the centres, positive; scaled to add up to what the joint share leaves. Equal if
                 not given

    A covariate that lies in no window belongs to one more window, "everything outside the others", with a share like
    that of a window around a centre. Windows are part of the model: they must not depend on any y.

    >>> import likeset as ls
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> space = ls.RKHS(RBF(0.1), bound=2.0, domain=np.linspace(0, 1, 30))
    >>> windows = ls.Windows.covering(space)
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.1), space, windows=windows)
    >>> seq.update(space.domain[3], 0.5)
    >>> low, high = seq.set.interval(space.domain)
    """

    def __init__(self, centres: Any, correlation: float = 0.3, joint_share: float = 0.0, shares: Any = None) -> None:
        array = real_array("centres", centres)
        array = array.reshape(-1, 1) if array.ndim <= 1 else array
        if array.ndim != 2 or len(array) == 0:
            raise ShapeError("centres", centres, f"has shape {array.shape}", "pass one covariate per row")
        self.centres = array
        self.correlation = _inside_unit_interval("correlation", correlation)
        self.joint_share = _share_of_joint(joint_share)
        self.shares = _positive_shares(shares, len(array), "centres")

    @classmethod
    def covering(
        cls,
        space: Space,
        points: Any = None,
        correlation: float = 0.3,
        joint_share: float = 0.0,
        cover: float = 0.9,
        max_windows: int = MAX_WINDOWS,
    ) -> Windows:
        """Windows around a few of the points: each point has a centre with which it correlates by ``cover`` at least.

        ``points`` default to the domain of the space; for a continuous one pass a net of it, for a linear model its
        arms. Centres are picked greedily, always the point least covered so far, up to ``max_windows``.
        """
        checked_space(space)
        if points is None:
            points = getattr(space, "domain", None)
            if points is None:
                raise InvalidArgumentError(
                    "points", None, "is missing and the space has no domain", "pass the arms, or a net of the domain"
                )
        candidates = space.covariates(points, "points")
        cover = _inside_unit_interval("cover", cover)
        limit = positive_integer("max_windows", max_windows)
        similar = _correlation_of(space)
        chosen, best = [0], np.abs(similar(candidates[:1], candidates)[0])
        while best.min() < cover and len(chosen) < limit:
            chosen.append(int(np.argmin(best)))
            best = np.maximum(best, np.abs(similar(candidates[chosen[-1:]], candidates)[0]))
        return cls(candidates[sorted(chosen)], correlation, joint_share)

    @staticmethod
    def from_masks(covariates: Any, masks: Any, shares: Any = None) -> MaskedWindows:
        """Windows of your own: ``masks[k, i]`` says whether ``covariates[i]`` belongs to window k."""
        return MaskedWindows(covariates, masks, shares)

    def __repr__(self) -> str:
        joint = f", joint_share={self.joint_share:g}" if self.joint_share else ""
        return f"Windows({len(self.centres)} centres, correlation={self.correlation:g}{joint})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        shares = None if self.shares is None else self.shares.tolist()
        return {
            "centres": self.centres.tolist(), "correlation": self.correlation, "joint_share": self.joint_share,
            "shares": shares,
        }  # fmt: skip

    def start(self, space: Space) -> Membership:
        """Membership before any covariate was seen."""
        _correlation_of(space)
        space.covariates(self.centres, "centres")
        weights = np.ones(len(self.centres)) if self.shares is None else self.shares
        weights = np.append(weights, weights.mean())  # the last one: everything outside
        shares = (1.0 - self.joint_share) * weights / weights.sum()
        if self.joint_share:
            shares = np.append(shares, self.joint_share)
        return Membership(self, space, np.log(shares), np.zeros((len(shares), 0), dtype=bool))

    def of(self, space: Space, x: Array) -> Mask:
        """Which windows the covariate x (one row) belongs to."""
        around = np.abs(_correlation_of(space)(self.centres, x[None])[:, 0]) >= self.correlation
        outside = [not around.any()]
        return np.concatenate([around, outside, [True]] if self.joint_share else [around, outside])


class MaskedWindows:
    """Windows given by a table: ``masks[k, i]`` says whether ``covariates[i]`` belongs to window k.

    Covariates that are not listed, or lie in no window, form one more window with an average share.

    >>> from likeset import Windows
    >>> Windows.from_masks([[1.0, 0.0], [0.0, 1.0]], [[True, False], [True, True]])
    MaskedWindows(2 windows over 2 covariates)
    """

    def __init__(self, covariates: Any, masks: Any, shares: Any = None) -> None:
        array = real_array("covariates", covariates)
        self.covariates = array.reshape(-1, 1) if array.ndim <= 1 else array
        table = real_array("masks", masks)
        if table.ndim != 2 or table.shape[1] != len(self.covariates) or len(table) == 0:
            raise ShapeError(
                "masks", masks, f"has shape {table.shape}", f"pass one row per window, {len(self.covariates)} columns"
            )
        if not np.isin(table, (0.0, 1.0)).all():
            raise InvalidArgumentError("masks", masks, "has entries other than 0 and 1", "pass booleans")
        self.masks = table.astype(bool)
        self.shares = _positive_shares(shares, len(table), "masks")

    def __repr__(self) -> str:
        return f"MaskedWindows({len(self.masks)} windows over {len(self.covariates)} covariates)"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        shares = None if self.shares is None else self.shares.tolist()
        return {"covariates": self.covariates.tolist(), "masks": self.masks.astype(int).tolist(), "shares": shares}

    def start(self, space: Space) -> Membership:
        """Membership before any covariate was seen."""
        space.covariates(self.covariates, "covariates")
        weights = np.ones(len(self.masks)) if self.shares is None else self.shares
        weights = np.append(weights, weights.mean())
        return Membership(self, space, np.log(weights / weights.sum()), np.zeros((len(weights), 0), dtype=bool))

    def of(self, space: Space, x: Array) -> Mask:
        """Which windows the covariate x (one row) belongs to."""
        listed = np.flatnonzero((self.covariates == x).all(axis=1))
        inside = self.masks[:, listed[0]] if len(listed) else np.zeros(len(self.masks), dtype=bool)
        return np.append(inside, not inside.any())


WINDOWS = (Windows, MaskedWindows)
AnyWindows = Windows | MaskedWindows


class SharedMasks:
    """One row of masks per covariate, append-only, shared by every membership that is a prefix of them."""

    def __init__(self, rows: Mask, capacity: int) -> None:
        self.filled = len(rows)
        self.rows = np.zeros((capacity, rows.shape[1]), dtype=bool)
        self.rows[: self.filled] = rows


class Membership:
    """Which window every covariate seen so far belongs to: immutable, and grows without copying.

    ``masks``, one row per window and one column per covariate, is what it starts from.
    """

    def __init__(self, windows: AnyWindows, space: Space, log_shares: Array, masks: Mask) -> None:
        self.windows, self.space, self.log_shares = windows, space, log_shares
        self._size = masks.shape[1]
        self._table = SharedMasks(masks.T, max(16, self._size))

    def __deepcopy__(self, memo: dict[int, Any]) -> Membership:
        # A table of its own: two sequences must not append to one.
        return Membership(self.windows, self.space, self.log_shares, self.masks)

    @property
    def masks(self) -> Mask:
        """Which windows (rows) hold which covariates (columns, in order of first appearance); a view, do not write."""
        return self._table.rows[: self._size].T

    def including(self, x: Array) -> Membership:
        """The same with one more covariate."""
        row = self.windows.of(self.space, x)
        table, n = self._table, self._size
        if table.filled != n or n == len(table.rows):
            table = SharedMasks(table.rows[:n], max(16, 2 * n))
        table.rows[n] = row
        table.filled = n + 1
        grown = copy.copy(self)
        grown.__dict__.pop("table", None)  # cached, of the covariates before
        grown._table, grown._size = table, n + 1
        return grown

    @cached_property
    def table(self) -> WindowTable:
        """Windows as the solver wants them: those that hold the same covariates are one, with the sum of the shares."""
        distinct, group = np.unique(self.masks, axis=0, return_inverse=True)
        shares = np.bincount(group.ravel(), weights=np.exp(self.log_shares), minlength=len(distinct))
        starts = np.concatenate([[0], np.cumsum(distinct.sum(axis=1))]).astype(np.int64)
        return WindowTable(starts, np.nonzero(distinct)[1].astype(np.int64), np.log(shares))

    def state(self) -> dict[str, Array]:
        """The masks of the covariates seen, in order of first appearance."""
        return {"masks": self.masks.astype(np.float64)}

    def restored(self, state: dict[str, Array]) -> Membership:
        """The membership whose ``state`` this is."""
        masks = np.asarray(state["masks"])
        if masks.ndim != 2 or len(masks) != len(self.log_shares) or not np.isin(masks, (0.0, 1.0)).all():
            raise ValueError("the windows' masks do not fit the windows")
        return Membership(self.windows, self.space, self.log_shares, masks.astype(bool))


def _correlation_of(space: Space) -> Any:
    if not isinstance(space, Correlated):
        raise InvalidArgumentError(
            "windows", space, "needs correlations, which this space does not offer", "use Windows.from_masks"
        )
    return space.correlation


def _inside_unit_interval(name: str, value: Any) -> float:
    number = real_number(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidArgumentError(name, value, "is not between 0 and 1", "pass e.g. 0.3")
    return number


def _share_of_joint(value: Any) -> float:
    number = real_number("joint_share", value)
    if not 0.0 <= number < 1.0:
        raise InvalidArgumentError("joint_share", value, "is outside [0, 1)", "pass 0 for no joint window, or e.g. 0.5")
    return number


def _positive_shares(shares: Any, count: int, of: str) -> Array | None:
    if shares is None:
        return None
    array = real_array("shares", shares)
    if array.shape != (count,):
        raise ShapeError("shares", shares, f"has shape {array.shape}", f"pass one share for each of the {count} {of}")
    if (array <= 0).any():
        raise InvalidArgumentError("shares", shares, "has an entry that is not positive", "pass positive shares")
    return array
