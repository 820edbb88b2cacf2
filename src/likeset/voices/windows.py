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

from typing import Any, Protocol, runtime_checkable

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import positive_integer, real_array, real_number
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.spaces.base import Space, checked_space
from likeset.voices.base import Membership, Opened, Voices

MAX_WINDOWS = 256


@runtime_checkable
class Correlated(Protocol):
    """A space that can say how similar two covariates are."""

    def correlation(self, x: Array, y: Array) -> Array:
        """Between -1 and 1 for every pair of rows."""
        ...


class Windows(Voices):
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
        self.correlation = inside_unit_interval("correlation", correlation)
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
        if not len(candidates):
            raise ShapeError("points", points, "is empty", "pass at least one point")
        cover = inside_unit_interval("cover", cover)
        limit = positive_integer("max_windows", max_windows)
        similar = correlation_of(space)
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
        correlation_of(space)
        space.covariates(self.centres, "centres")
        weights = np.ones(len(self.centres)) if self.shares is None else self.shares
        weights = np.append(weights, weights.mean())  # the last one: everything outside
        shares = (1.0 - self.joint_share) * weights / weights.sum()
        if self.joint_share:
            shares = np.append(shares, self.joint_share)
        return Membership(self, space, np.log(shares), np.zeros((len(shares), 0), dtype=bool))

    def whole(self, space: Space) -> Mask:
        """The joint one, if there is one: the last."""
        count = len(self.centres) + 1 + bool(self.joint_share)
        return (np.arange(count) == count - 1) & bool(self.joint_share)

    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """Which windows the covariate x (one row) belongs to; classes do not matter."""
        around = np.abs(correlation_of(space)(self.centres, x[None])[:, 0]) >= self.correlation
        outside = [not around.any()]
        return np.concatenate([around, outside, [True]] if self.joint_share else [around, outside])


class MaskedWindows(Voices):
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

    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """Which windows the covariate x (one row) belongs to; classes do not matter."""
        listed = np.flatnonzero((self.covariates == x).all(axis=1))
        inside = self.masks[:, listed[0]] if len(listed) else np.zeros(len(self.masks), dtype=bool)
        return np.append(inside, not inside.any())


def correlation_of(space: Space) -> Any:
    """The space's own measure of how similar covariates are, or a typed error."""
    if not isinstance(space, Correlated):
        raise InvalidArgumentError(
            "windows", space, "needs correlations, which this space does not offer", "use Windows.from_masks"
        )
    return space.correlation


def inside_unit_interval(name: str, value: Any) -> float:
    """A number strictly between 0 and 1, or a typed error."""
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
