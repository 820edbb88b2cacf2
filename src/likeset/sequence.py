"""ConfidenceSequence: the facade that puts family, space, predictor, weighting and ledger together."""

from __future__ import annotations

from math import inf
from os import PathLike
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from likeset._typing import Array
from likeset.all_or_nothing import AllOrNothing
from likeset.arguments import choice, error_level
from likeset.embedded import Embedded, Given
from likeset.errors import InvalidArgumentError, PieceError
from likeset.evidence.alarm import Alarm, alarm_wanted
from likeset.evidence.intake import checked_rows
from likeset.evidence.ledger import Ledger
from likeset.evidence.own_pieces import OwnPieces, is_built_in
from likeset.evidence.running import Running
from likeset.evidence.scoring import Scoring
from likeset.families.base import Family
from likeset.predictors import Belief, Believer, Forecast, Forecaster, Mixture, Predictor
from likeset.predictors.aggregate import started
from likeset.predictors.base import Gauge, is_piece
from likeset.predictors.mixture import MixtureForecaster
from likeset.progress import counted
from likeset.sets import LikelihoodSet
from likeset.snapshots import set_of
from likeset.spaces.base import Basis, Space
from likeset.spaces.menu import Menu
from likeset.undo import Undo
from likeset.voices.automatic import PURPOSES, automatic_voices
from likeset.voices.base import Membership, Voices
from likeset.voices.chosen import chosen_voices, one_of
from likeset.voices.contrasts import Contrasts
from likeset.voices.duels import Duels
from likeset.voices.windows import Windows
from likeset.weights import Unweighted, Weigher, Weighting


class Step(NamedTuple):
    """One observation on its way into a sequence: what was known before y, and log q(y) of its own forecast."""

    basis: Basis
    phi: Embedded
    weight: float
    label: int
    membership: Membership | None
    log_q: float


class ConfidenceSequence(AllOrNothing):
    r"""Anytime-valid confidence sets for theta, from observations at covariates chosen adaptively.

        C_t = { theta in Theta : prod_s [ q_s(y_s|x_s) / p_theta(y_s|x_s) ]^{w_s} <= 1/alpha }

    contains the true theta at all times t at once with probability at least 1 - alpha, if y given x follows the
    ``family`` with z = x'theta and theta lies in the ``space``.

    Parameters
    ----------
    family     the law of y given z, e.g. ``Poisson()``
    space      where theta lives, e.g. ``Linear(dim=3, bound=2.0)``
    alpha      error level in (0, 1)
    predictor  supplies q_s; ``None`` is the hyper-mixture :class:`~likeset.Mixture`, with the smallest sets as a rule;
               any object with ``forecast(phi)`` and ``observe(phi, y)`` will do
    weighting  supplies w_s in [0, 1]; ``None`` is w = 1
    voices     likelihood ratios that are averaged, each of which uses a part of the data, such as
               :class:`~likeset.Windows`; ``None`` is one ratio for all data, the joint set; ``"auto"`` is what was
               measured to be tightest (:mod:`~likeset.voices.automatic`), given what :meth:`expect` says will be asked
    windows    another name for ``voices``
    alarm      a test of the model itself, with a tenth of the error level and at a price of 0.105 nats: if noise has
               another scale, shape or tail, the set becomes empty; ``set.diagnose()`` says what forecast better.
               "auto": on where laws outside the family are known and predictor and voices are left to their defaults,
               off once :meth:`expect` has chosen windows for an optimist

    A sequence made this way lives in memory; :meth:`open` makes one that lives on disk.

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=2.0), alpha=0.05)
    >>> seq.update([1.0, 0.0], 3)                         # one observation
    >>> seq.update([[0.0, 1.0], [1.0, 1.0]], [0, 2])      # several, in order
    >>> s = seq.set
    >>> s.contains([0.5, -0.5])
    True
    >>> low, high = s.interval([[1.0, 0.0]])
    >>> bool(low[0] < 0.5 < high[0])
    True
    """

    def __init__(
        self,
        family: Family,
        space: Space,
        alpha: float = 0.05,
        predictor: Predictor | Forecaster | None = None,
        weighting: Weighting | Weigher | None = None,
        voices: Voices | Literal["auto"] | None = "auto",
        *,
        windows: Voices | Literal["auto"] | None = "auto",
        alarm: bool | Literal["auto"] = "auto",
    ) -> None:
        if isinstance(family, type) or not isinstance(family, Family):
            raise InvalidArgumentError(
                "family", family, "is not a family", "pass an object, e.g. Poisson() or CustomFamily(...)"
            )
        if isinstance(space, Menu):
            raise InvalidArgumentError(
                "space", space, "stands for several spaces", "pass AnyOf((family, space)) instead of a sequence"
            )
        if isinstance(space, type) or not isinstance(space, Space):
            raise InvalidArgumentError("space", space, "is not a space", "pass e.g. Linear(dim=3, bound=2.0)")
        self.family = family
        self.space = space
        self._alpha = error_level("alpha", alpha)
        self.predictor = Mixture() if predictor is None else predictor
        self.weighting = Unweighted() if weighting is None else weighting
        if not is_piece(self.predictor, Predictor, Forecaster):
            raise InvalidArgumentError(
                "predictor",
                predictor,
                "is not a predictor",
                "pass e.g. FTRL() or an object with forecast and observe",
            )
        if not is_piece(self.weighting, Weighting, Weigher):
            raise InvalidArgumentError(
                "weighting",
                weighting,
                "is not a weighting",
                "pass e.g. BiasWeighting() or an object with weight and observe",
            )
        name, voices = one_of(voices, windows)
        self.voices = chosen_voices(name, voices, family, space)
        self._voices_are_automatic = isinstance(voices, str)
        self._alarm_is_automatic = isinstance(alarm, str) and alarm == "auto"
        self.alarm = alarm_wanted(alarm, family, self.predictor, self._voices_are_automatic)
        self._rows_heard = inf  # by the alarm
        basis = space.start()
        self._running = Running(
            ledger=Ledger(family, space.covariate_shape),
            basis=basis,
            forecaster=started(self.predictor, family, space),
            weigher=self.weighting.start(family, space) if isinstance(self.weighting, Weighting) else self.weighting,
            membership=None if self.voices is None else self.voices.start(space),
            directions=None if self.voices is None else self.voices.directions(family, space),
            alarm=self._fresh_alarm(),
        )
        self._running.gauge = self._gauge()
        pieces = {"forecaster": self.predictor, "weigher": self.weighting}
        self._own_roles = tuple(role for role, piece in pieces.items() if not is_built_in(piece))
        self._own: OwnPieces | None = None
        self._scoring = Scoring(family, space.bound, self.predictor, trusted=is_built_in(self.predictor))
        self._set: LikelihoodSet | None = None
        super().__init__()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        family: Family,
        space: Space,
        alpha: float = 0.05,
        predictor: Predictor | Forecaster | None = None,
        weighting: Weighting | Weigher | None = None,
        voices: Voices | Literal["auto"] | None = "auto",
        *,
        windows: Voices | Literal["auto"] | None = "auto",
        alarm: bool | Literal["auto"] = "auto",
    ) -> Self:
        """A durable sequence: made if ``path`` does not exist, otherwise continued where it was left.

        ``update`` returns when its rows are on disk, so nothing acknowledged is lost, whatever happens to the process
        or the machine. The definition must be that of the journal. One writer at a time; see docs/durable.md.

        >>> import tempfile, likeset as ls
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for _ in range(2):
        ...         with ls.ConfidenceSequence.open(f"{folder}/trial", ls.Poisson(), ls.Linear(2, 2.0)) as seq:
        ...             seq.update([1.0, 0.0], 3)
        >>> seq.n_observations
        2
        """
        from likeset.persistence.durable import DurableRecord

        voices = one_of(voices, windows)[1]
        sequence = cls(family, space, alpha, predictor, weighting, voices, alarm=alarm)
        sequence._durable = DurableRecord(sequence, path, voices)
        return sequence

    def __repr__(self) -> str:
        return (
            f"ConfidenceSequence({self.family!r}, {self.space!r}, alpha={self.alpha:g}, predictor={self.predictor!r}, "
            f"weighting={self.weighting!r}, voices={self.voices!r}) with {self.n_observations} observations"
        )

    @property
    def windows(self) -> Voices | None:
        """Another name for ``voices``."""
        return self.voices

    @property
    def alpha(self) -> float:
        """The error level; fixed when the sequence starts."""
        return self._alpha

    @property
    def n_observations(self) -> int:
        """Number of observations recorded."""
        with self._lock:
            self._settle()
            return len(self._running.ledger)

    @property
    def forecaster(self) -> Forecaster:
        """The running predictor."""
        with self._lock:
            self._settle()
            return self._running.forecaster

    @property
    def belief(self) -> Belief | None:
        """What the predictor believes of theta, frozen; None if it does not say (the default, ``Mixture``, does).

        Good to choose by (:class:`~likeset.Guarded`); unlike ``set`` it guarantees nothing.
        """
        with self._lock:
            self._settle()
            forecaster = self._running.forecaster
            return forecaster.belief(self.space, self._running.basis) if isinstance(forecaster, Believer) else None

    @property
    def ledger(self) -> Ledger:
        """The record of every observation, weight and forecast; read only, and only while no other thread updates."""
        with self._lock:
            self._settle()
            return self._running.ledger

    def expect(self, arms: Any = None, purpose: str = "optimism", *, contrasts: Any = None) -> None:
        """Say, before the first observation, which covariates will be asked about (None: not known), and what for.

        With ``voices="auto"`` the sequence then takes the voices that are best for the purpose
        (:mod:`~likeset.voices.automatic`): "optimism", to choose by upper bounds, "inference", for intervals and
        certified decisions, or "largest" ("smallest"), which arm has the largest z. Policies do this for themselves.
        Bounds get tighter and stay as valid, since arms known beforehand do not depend on any y. Voices that were given
        stay what they are.

        ``contrasts``, rows a or a :class:`~likeset.Contrasts`: the questions a'theta that will be asked. They get
        voices beside those of inference, or beside the voices that were given.
        """
        purpose = choice("purpose", purpose, PURPOSES)
        with self._lock:
            self._settle()
            if self.n_observations:
                raise InvalidArgumentError(
                    "arms",
                    arms,
                    f"come after {self.n_observations} observations",
                    "call expect before the first update",
                )
            if contrasts is not None:
                announced = self._announced(contrasts, arms)
                self._all_or_nothing(lambda undo: self._take_voices(undo, announced), new_voices=True)
            elif self._voices_are_automatic and not isinstance(self.voices, Contrasts):
                chosen = self._automatic(arms, purpose)
                self._all_or_nothing(lambda undo: self._take_voices(undo, chosen), new_voices=True)

    def update(self, x: Any, y: Any, offset: Any = None, exposure: Any = None, trials: Any = None) -> None:
        """Record one observation, or a batch in order (rows of x, entries of y); survival y: (time, event) pairs.

        Of every row more may be given, one number for all or one each, as long as it is known before y
        (docs/exposure.md): an ``offset``, z = x'theta + offset; the ``exposure`` of a count, whose mean is then
        exposure times e^z; the number of ``trials`` in which y successes were counted. A lifetime watched from some
        time on is the triple (entry, exit, event).

        All or nothing: after an error, or Ctrl-C at any moment, the sequence is as it was before the call, or as it
        is after it. Threads may share a sequence: updates of several take turns.
        """
        X, Y, given = checked_rows(self.family, self.space, x, y, offset, exposure, trials)
        with self._lock:
            self._settle()
            if self._own_roles and self._own is None:
                self._own = OwnPieces(self._running, self._own_roles, self.family, self.space)
            self._all_or_nothing(lambda undo: self._record_all(undo, X, Y, given))

    @property
    def set(self) -> LikelihoodSet:
        """The confidence set of what has been seen: an immutable snapshot."""
        with self._lock:
            self._settle()
            if self._set is None:
                self._set = set_of(self, self._running)
            return self._set

    def save(self, path: str | PathLike[str]) -> None:
        """Write the sequence to a file that ``likeset.load`` continues bit for bit."""
        from likeset.persistence.files import save

        with self._lock:
            self._settle()
            save(self, path)

    def _automatic(self, arms: Any, purpose: str) -> Voices | None:
        rows = None if arms is None else self.space.covariates(arms, "arms")
        return automatic_voices(self.family, self.space, rows, purpose)

    def _announced(self, contrasts: Any, arms: Any) -> Contrasts:
        """The contrasts beside the voices that there are, or those of inference; refused if they do not fit."""
        if isinstance(self.voices, Contrasts) or (isinstance(self.voices, Duels) and not self._voices_are_automatic):
            raise InvalidArgumentError("contrasts", contrasts, "come beside others", "announce all of them at once")
        if not isinstance(contrasts, Contrasts):
            others = self._automatic(arms, "inference") if self._voices_are_automatic else self.voices
            contrasts = Contrasts(contrasts, others=others)
        chosen_voices("contrasts", contrasts, self.family, self.space)
        return contrasts

    def _take_voices(self, undo: Undo, voices: Voices | None) -> None:
        undo.keep(self)
        undo.keep(self._running)
        self.voices, self._set = voices, None
        if self._alarm_is_automatic and isinstance(voices, Windows) and not voices.joint_share:
            self.alarm, self._running.alarm = False, None  # one voice more to solve for, in every round of a game
        self._running.membership = None if voices is None else voices.start(self.space)
        self._running.directions = None if voices is None else voices.directions(self.family, self.space)
        self._running.gauge = self._gauge()

    def _fresh_alarm(self) -> Alarm | None:
        """Forecasts from outside the model that have seen nothing, if they are wanted."""
        return Alarm(self.family, self._rows_heard) if self.alarm else None

    def _gauge(self) -> Gauge | None:
        """Who says how well z is known, if voices or the alarm ask: the forecaster, or a mixture beside it."""
        forecaster = self._running.forecaster
        asked = self.voices is not None and self.voices.gauged and not isinstance(forecaster, Gauge)
        asked = asked or (self.alarm and not isinstance(forecaster, MixtureForecaster))
        return Mixture().start(self.family, self.space) if asked else None

    def _record_all(self, undo: Undo, X: Array, Y: Array, given: Array) -> None:
        running, own = self._running, self._own
        self._set = None  # made anew when asked for; until the change is complete nobody can ask
        if own is not None:
            undo.when_rolled_back(lambda: own.rebuild(running))  # the first step is taken back last: rows, then pieces
        undo.keep(running)
        rows = zip(X, Y, given.tolist(), strict=True)
        for x, y, known in counted(rows, len(X), "updating"):
            self._record(undo, x, y, Given(*known))

    # -- one observation ----------------------------------------------------------------------------------------

    def _record(self, undo: Undo, x: Array, y: Array, given: Given) -> None:
        """Algorithm 1, one step: embed, forecast, weigh; then, and only then, look at y."""
        step = self._scored(undo, x, y, given)
        self._take(step, y, step.log_q)

    def _scored(self, undo: Undo, x: Array, y: Array, given: Given) -> Step:
        """All that is known before y, what an update will change kept, and the score of the forecast."""
        running = self._running
        ledger, membership, directions = running.ledger, running.membership, running.directions
        basis, phi = ledger.embed(running.basis, x, given)
        self._scoring.check_family(phi, y)
        for piece in running.pieces(but=self._own_roles):
            piece.remember(undo, phi)
        forecast = running.forecaster.forecast(phi)
        weight = self._checked_weight(running.weigher.weight(phi))
        label = running.label(phi)
        ledger.remember(undo, phi, label)
        if directions is not None:
            directions.remember(undo, phi)
        if running.alarm is not None:
            running.alarm.remember(undo)
        if membership is not None and ledger.group(phi.index, label) is None:
            membership = membership.including(x, label)
        return Step(basis, phi, weight, label, membership, self._checked_score(forecast, phi, y))

    def _take(self, step: Step, y: Array, log_q: float) -> None:
        """Record an observation with its numerator, and let the pieces learn."""
        running, phi = self._running, step.phi
        running.basis, running.membership = step.basis, step.membership
        running.ledger.append(phi, y, step.weight, log_q, step.label)
        if running.directions is not None:
            running.directions.record(step.basis, phi, y, step.weight)
        if running.alarm is not None:
            running.alarm.record(phi, y, step.weight, log_q, running.believed(phi))
        for piece in running.pieces():
            piece.observe(phi, y)

    def _checked_weight(self, weight: Any) -> float:
        if isinstance(weight, (float, int)) and 0.0 <= weight <= 1.0:
            return float(weight)
        try:
            number = float(weight)
        except (TypeError, ValueError):
            number = np.nan
        if not 0.0 <= number <= 1.0:
            raise PieceError(
                f"the weighting {self.weighting!r} returned w = {weight!r}, outside [0, 1]; "
                "with w > 1 the ratio is no supermartingale and coverage is lost."
            )
        return number

    def _checked_score(self, forecast: Forecast, phi: Embedded, y: Array) -> float:
        return self._scoring.score(forecast, phi, y)
