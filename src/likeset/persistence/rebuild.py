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

from likeset._typing import Array
from likeset.arguments import LARGEST
from likeset.embedded import Given
from likeset.evidence.intake import check_given, observations
from likeset.evidence.ledger import Ledger
from likeset.families.answers import merged_sums
from likeset.families.base import Family
from likeset.families.merged import MergedData
from likeset.predictors import Aggregate, Mixture
from likeset.spaces.base import Space

if TYPE_CHECKING:
    from likeset.sequence import ConfidenceSequence

MOST_CLASSES = 1000
AGREE = 1e-8  # coordinates of the same basis on another machine differ by rounding, those of another basis by more
_DEFAULT_BELIEFS = 12


@dataclass(frozen=True)
class Rows:
    """What a file says happened, in order; one row per observation."""

    x: Array
    y: Array
    weights: Array
    log_q: Array
    classes: Array
    given: Array

    def parts(self) -> tuple[Array, ...]:
        """x, y, weights, log q, classes and what else was given."""
        return self.x, self.y, self.weights, self.log_q, self.classes, self.given

    def checked(self, family: Family, space: Space) -> Rows:
        """The rows as update would have recorded them (zeros have no sign); ValueError if it would not have."""
        if len(self.x) == 0:
            return self
        check_given(family, self.given)
        x, y = space.covariates(self.x), observations(family, self.y, self.given)
        if not (np.array_equal(x, self.x) and np.array_equal(y, self.y)):
            raise ValueError("x or y is not what update records")
        if not ((self.weights >= 0) & (self.weights <= 1)).all():
            raise ValueError("a weight is outside [0, 1]")
        if not (self.log_q <= LARGEST).all() or (self.log_q[np.isfinite(self.log_q)] < -LARGEST).any():
            raise ValueError("a log-density is no number")
        if not ((self.classes >= 0) & (self.classes <= MOST_CLASSES) & (self.classes % 1 == 0)).all():
            raise ValueError("a class is no small whole number")
        return Rows(x, y, self.weights, self.log_q, self.classes, self.given)


@dataclass(frozen=True)
class Limits:
    """How large a sequence may become while it is rebuilt: bytes, and dimensions of the span."""

    memory: int
    dimensions: int


def rebuilt(sequence: ConfidenceSequence, rows: Rows, pieces: Iterable[Any], limits: Limits) -> MergedData:
    """Fill a fresh sequence with the rows and show them to ``pieces``; ValueError beyond the limits.

    Returns the data without their weights, as forecasters keep them.

    A built-in forecaster is asked before it observes, as ``update`` does, for a forecast moves its warm starts.
    """
    running = sequence._running
    ledger = running.ledger = Ledger(sequence.family, sequence.space.covariate_shape)
    running.basis = sequence.space.start()
    running.membership = None if sequence.voices is None else sequence.voices.start(sequence.space)
    running.directions = (
        None if sequence.voices is None else sequence.voices.directions(sequence.family, sequence.space)
    )
    pieces = list(pieces)
    alarm = running.alarm = sequence._fresh_alarm()
    if not any(piece is running.source for piece in pieces):
        alarm = None  # nobody here knows what was believed: it takes its state back, or the rows are shown once more
    width = sum(beliefs_of(sequence.predictor) for piece in pieces if piece is running.forecaster) + 1
    windows = 0 if running.membership is None else len(running.membership.log_shares)
    windows += 0 if running.directions is None else 8 * len(running.directions.units)
    steps = [_step(piece, (running.forecaster, running.gauge)) for piece in pieces]
    plain = MergedData(merged_sums(sequence.family))
    for x, y, weight, log_q, label, given in zip(*rows.parts(), strict=True):
        basis, phi = ledger.embed(running.basis, x, Given(*given.tolist()))
        d = basis.dimension
        if d > limits.dimensions or max(8 * width * d * d, windows * phi.index) > limits.memory:
            raise ValueError(f"{d} dimensions and {windows} windows are more than the file's size can explain")
        if running.membership is not None and ledger.group(phi.index, int(label)) is None:
            running.membership = running.membership.including(x, int(label))
        running.basis = basis
        ledger.append(phi, y, float(weight), float(log_q), int(label))
        if running.directions is not None:
            running.directions.record(basis, phi, y, float(weight))
        if alarm is not None:
            alarm.record(phi, y, float(weight), float(log_q), running.believed(phi))
        plain.add(phi, y)
        for step in steps:
            step(phi, y)
    sequence._set = None
    return plain


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


def _step(piece: Any, forecasters: tuple[Any, Any]) -> Callable[[Any, Array], None]:
    if not any(piece is forecaster for forecaster in forecasters) or not type(piece).__module__.startswith("likeset."):
        return piece.observe  # type: ignore[no-any-return]

    def forecast_and_observe(phi: Any, y: Array) -> None:
        piece.forecast(phi)
        piece.observe(phi, y)

    return forecast_and_observe
