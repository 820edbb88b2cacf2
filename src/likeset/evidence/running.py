"""What a sequence carries from one observation to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likeset.embedded import Embedded
from likeset.evidence.alarm import Alarm
from likeset.evidence.ledger import Ledger
from likeset.families.outside import Believed
from likeset.predictors import Forecaster
from likeset.predictors.base import Gauge
from likeset.predictors.mixture import MixtureForecaster
from likeset.spaces.base import Basis
from likeset.voices.base import Membership
from likeset.voices.directions import Directions
from likeset.weights import Weigher


@dataclass
class Running:
    """Everything that changes with an observation."""

    ledger: Ledger
    basis: Basis
    forecaster: Forecaster
    weigher: Weigher
    membership: Membership | None
    alarm: Alarm | None = None  # forecasts from outside the model, if there are any
    directions: Directions | None = None  # sums of directional voices, if there are any
    gauge: Any = None  # says how well z is known, if voices or the alarm ask and the forecaster does not

    def pieces(self, but: tuple[str, ...] = ()) -> list[Any]:
        """What learns from observations, without the roles named."""
        found = [] if self.gauge is None else [self.gauge]  # ours, whoever forecasts
        if "weigher" not in but:
            found.insert(0, self.weigher)
        if "forecaster" not in but:
            found.insert(0, self.forecaster)
        return found

    def label(self, phi: Embedded) -> int:
        """The class of an observation at phi, before its y is known."""
        if self.membership is None:
            return 0
        gauge: Any = self.forecaster if self.gauge is None or isinstance(self.forecaster, Gauge) else self.gauge
        return self.membership.label(phi.x, lambda: float(gauge.spread(phi)))

    def believed(self, phi: Embedded) -> Believed:
        """What is believed of z at phi, before its y is known; for the alarm."""
        return self.source.belief_about_z(phi)  # type: ignore[no-any-return]

    @property
    def source(self) -> Any:
        """Whose beliefs the alarm reads."""
        return self.forecaster if isinstance(self.forecaster, MixtureForecaster) else self.gauge
