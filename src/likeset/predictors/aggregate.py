"""Bayes mixture of several predictors."""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.families.merged import MergedData
from likeset.predictors.base import Blend, Forecaster, Predictor, is_piece, updated_shares
from likeset.predictors.ftrl import FTRL
from likeset.predictors.mixture import Mixture
from likeset.spaces.base import Space
from likeset.state_checks import expect_log_shares
from likeset.undo import Undo


class Aggregate:
    """q_s = sum_j pi_j q_j with pi_j proportional to predictor j's past likelihood.

    Costs at most log(number of predictors) nats against the best of them, at every time.

    >>> from likeset.predictors import FTRL
    >>> Aggregate(FTRL(penalty=0.1), FTRL(penalty=10.0))
    Aggregate(FTRL(penalty=0.1), FTRL(penalty=10))
    """

    def __init__(self, *predictors: Predictor | Forecaster) -> None:
        if not predictors:
            raise InvalidArgumentError("predictors", predictors, "is empty", "pass at least one predictor")
        for i, predictor in enumerate(predictors):
            if not is_piece(predictor, Predictor, Forecaster):
                raise InvalidArgumentError(
                    f"predictors[{i}]",
                    predictor,
                    "is not a predictor",
                    "pass objects such as FTRL() or Mixture()",
                )
        self.predictors = predictors

    def __repr__(self) -> str:
        return f"Aggregate({', '.join(map(repr, self.predictors))})"

    @classmethod
    def example(cls) -> Aggregate:
        """An instance for the contract suite."""
        return Aggregate(FTRL(penalty=0.5), Mixture())

    def start(self, family: Family, space: Space) -> AggregateForecaster:
        """Start every member."""
        return AggregateForecaster([started(p, family, space) for p in self.predictors])


class AggregateForecaster:
    """Running state of :class:`Aggregate`: members and the log of their posterior shares."""

    def __init__(self, members: list[Forecaster]) -> None:
        self.members = members
        self.log_shares = np.full(len(members), -np.log(len(members)))
        self._latest: tuple[Embedded, Blend] | None = None

    def forecast(self, phi: Embedded) -> Blend:
        """The blend of the members' densities."""
        blend = Blend([m.forecast(phi) for m in self.members], self.log_shares)
        self._latest = (phi, blend)
        return blend

    def observe(self, phi: Embedded, y: Array) -> None:
        """Bayes' rule for the shares, then let every member learn."""
        blend = self._latest[1] if self._latest and self._latest[0] is phi else self.forecast(phi)
        self.log_shares = updated_shares(self.log_shares, blend.log_densities(y))
        for member in self.members:
            member.observe(phi, y)

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep the shares and what the members will change."""
        undo.keep(self)
        for member in self.members:
            member.remember(undo, phi)  # type: ignore[attr-defined]

    def state(self) -> dict[str, Array]:
        """Shares and the members' states."""
        state = {"log_shares": self.log_shares}
        for i, member in enumerate(self.members):
            state |= {f"{i}.{key}": value for key, value in member.state().items()}  # type: ignore[attr-defined]
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.log_shares = expect_log_shares(state, "log_shares", len(self.members))
        for i, member in enumerate(self.members):
            prefix = f"{i}."
            own = {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}
            member.restore(own)  # type: ignore[attr-defined]

    def fits(self, count: int, dimension: int) -> bool:
        """Whether every member's state is that of so many covariates and dimensions, as far as members can tell."""
        return all(m.fits(count, dimension) for m in self.members if hasattr(m, "fits"))

    def resume(self, data: MergedData) -> None:
        """After ``restore``: members take a copy of the ledger's data."""
        for member in self.members:
            if hasattr(member, "resume"):
                member.resume(data)


def started(predictor: Predictor | Forecaster, family: Family, space: Space) -> Forecaster:
    """Start settings; a running forecaster is taken as it is."""
    return predictor.start(family, space) if isinstance(predictor, Predictor) else predictor
