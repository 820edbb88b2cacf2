"""A sequence made again from what is true about it: rows (x, y), weights and log-densities of the forecasts.

Everything else in a running sequence follows from these rows and the settings: numbers of covariates, gains, merged
sums, basis, coordinates and windows, by the very steps that ``update`` takes and in the same order, hence bit for bit
on the same machine. Forecaster and weigher can be made again as well, by showing them the rows; what they forecast then
is not used, because the recorded log q stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset.arguments import LARGEST
from likeset.ledger import Ledger
from likeset.predictors import Aggregate, Mixture
from likeset.support.terms import Array

if TYPE_CHECKING:
    from likeset.sequence import ConfidenceSequence

AGREE = 1e-8  # coordinates of the same basis on another machine differ by rounding, those of another basis by more
_DEFAULT_BELIEFS = 5


@dataclass(frozen=True)
class Rows:
    """What a file says happened, in order; one row per observation."""

    x: Array
    y: Array
    weights: Array
    log_q: Array

    def checked(self, sequence: ConfidenceSequence) -> Rows:
        """The rows as update would have recorded them (zeros have no sign); ValueError if it would not have."""
        if len(self.x) == 0:
            return self
        x, y = sequence.space.covariates(self.x), sequence.family.observations(self.y)
        if not (np.array_equal(x, self.x) and np.array_equal(y, self.y)):
            raise ValueError("x or y is not what update records")
        if not ((self.weights >= 0) & (self.weights <= 1)).all():
            raise ValueError("a weight is outside [0, 1]")
        if not (self.log_q <= LARGEST).all() or (self.log_q[np.isfinite(self.log_q)] < -LARGEST).any():
            raise ValueError("a log-density is no number")
        return Rows(x, y, self.weights, self.log_q)


def rebuilt(sequence: ConfidenceSequence, rows: Rows, pieces: Iterable[Any], limit: int) -> None:
    """Fill a fresh sequence with the rows and show them to ``pieces``; ValueError where that takes too much memory.

    A built-in forecaster is asked before it observes, as ``update`` does, for a forecast moves its warm starts.
    """
    from likeset.sequence import embedded

    running = sequence._running
    running.ledger, running.basis = Ledger(sequence.family, sequence.space.covariate_shape), sequence.space.start()
    running.membership = None if sequence.windows is None else sequence.windows.start(sequence.space)
    pieces = list(pieces)
    width = sum(beliefs_of(sequence.predictor) for piece in pieces if piece is running.forecaster) + 1
    windows = 0 if running.membership is None else len(running.membership.log_shares)
    steps = [_step(piece, running.forecaster) for piece in pieces]
    for x, y, weight, log_q in zip(rows.x, rows.y, rows.weights, rows.log_q, strict=True):
        basis, membership, phi = embedded(running, x)
        if basis is not running.basis and 8 * width * basis.dimension**2 > limit:
            raise ValueError(f"a span of {basis.dimension} dimensions takes more memory than {limit} bytes")
        if windows * phi.index > limit:
            raise ValueError(f"{windows} windows of {phi.index} covariates take more memory than {limit} bytes")
        running.basis, running.membership = basis, membership
        running.ledger.append(phi, y, float(weight), float(log_q))
        for step in steps:
            step(phi, y)
    sequence._set = None


def same_coordinates(saved: Array, rebuilt_ones: Array) -> bool:
    """Whether a state saved with these coordinates means the same in the rebuilt basis."""
    if saved.shape != rebuilt_ones.shape:
        return False
    return saved.size == 0 or bool(np.abs(saved - rebuilt_ones).max() <= AGREE * np.abs(rebuilt_ones).max())


def beliefs_of(predictor: Any) -> int:
    """How many matrices on the span a predictor keeps."""
    if isinstance(predictor, Aggregate):
        return sum(map(beliefs_of, predictor.predictors))
    if isinstance(predictor, Mixture):
        return _DEFAULT_BELIEFS if predictor.precisions is None else len(predictor.precisions)
    return 1


def _step(piece: Any, forecaster: Any) -> Callable[[Any, Array], None]:
    if piece is not forecaster or not type(piece).__module__.startswith("likeset."):
        return piece.observe  # type: ignore[no-any-return]

    def forecast_and_observe(phi: Any, y: Array) -> None:
        piece.forecast(phi)
        piece.observe(phi, y)

    return forecast_and_observe
