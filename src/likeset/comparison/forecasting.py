"""Sets whose numerator is a forecaster: what it has lost so far is how high the level lies."""

from __future__ import annotations

from likeset._typing import Array
from likeset.comparison.base import Comparison
from likeset.comparison.likelihood import LevelSnapshot, level_snapshot
from likeset.embedded import Embedded
from likeset.predictors.base import Predictor
from likeset.undo import Undo


class ForecastingSet(Comparison):
    r"""{ theta in Theta : L_t(theta) <= log(1/alpha) + sum_s -log q_s(y_s | x_s) },   q_s fixed before y_s."""

    def _start(self, predictor: Predictor) -> None:
        """Whose losses count; called once by the constructor, when the model has been checked."""
        self._forecaster = predictor.start(self.family, self.space)
        self._loss = 0.0

    def _remember(self, undo: Undo, phi: Embedded) -> None:
        undo.keep(self)
        self._forecaster.remember(undo, phi)  # type: ignore[attr-defined]  # all of the library's have it

    def _observe(self, phi: Embedded, y: Array) -> None:
        self._loss -= float(self._forecaster.forecast(phi).log_density(y))  # made before y is observed
        self._forecaster.observe(phi, y)

    def _snapshot(self) -> LevelSnapshot:
        return level_snapshot(self._stream, self.alpha, self._loss)
