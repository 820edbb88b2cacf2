"""A sequence and its journal: how one is made of the other.

The rows in the journal are the truth: x, y, the weight and the log-density *as scored*. A sequence is made again from
them and never forecasts what has been scored, so its evidence is that of the sequence which wrote them, bit for bit;
forecaster and weigher observe the rows again. So that this does not take ever longer, all that follows from the rows is
kept in the journal now and then; where that cannot be used the rows are enough.
"""

from __future__ import annotations

import io
import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset import __version__
from likeset._typing import Array
from likeset.arguments import database_path
from likeset.embedded import NOTHING, Given
from likeset.errors import FileFormatError, LikesetError, PieceError
from likeset.evidence.ledger import Ledger
from likeset.evidence.own_pieces import copied
from likeset.persistence.descriptions import describe, piece_from, settings_alone
from likeset.persistence.journal import Journal
from likeset.persistence.piece_states import PIECES, fresh, has_state, state_of
from likeset.persistence.rebuild import Rows
from likeset.progress import counted
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.all_or_nothing import AllOrNothing
    from likeset.sequence import ConfidenceSequence

STATE_EVERY = 1000  # rows at least; more where a state is large
STATE_BYTES_PER_ROW = 256  # what keeping states may cost, on average
_IN_ROWS = ("x", "y", "weights", "log_q", "classes", "given", "covariate")  # arrays of the ledger that the rows hold
_MADE_BY = f"likeset {__version__}, state 4"


class DurableRecord:
    """The journal of one sequence."""

    def __init__(self, sequence: ConfidenceSequence, path: str | PathLike[str], windows: Any) -> None:
        definition: dict[str, Any] = {"alpha": sequence.alpha} | {
            role: describe(getattr(sequence, role)) for role in ("family", "space", "predictor", "weighting")
        }
        asked = windows if windows is None or isinstance(windows, str) else describe(windows)
        definition["windows"] = settings_alone(asked)
        if sequence.alarm:  # journals of earlier releases have none
            definition["alarm"] = "auto" if sequence._alarm_is_automatic else 1
        definition = json.loads(json.dumps(definition))  # as it will be read
        target = database_path("path", path)
        self.journal = Journal(target, definition, left_open=("alarm",) if sequence._alarm_is_automatic else ())
        kept = self.journal.definition.get("alarm")
        sequence.alarm, sequence._alarm_is_automatic = kept is not None, kept == "auto"
        self._kept = 0  # rows of the last state
        self._due = STATE_EVERY
        try:
            self._read_into(sequence)
        except BaseException:
            self.journal.close()
            raise

    def write(self, before: tuple[int, int], sequence: AllOrNothing, new_voices: bool) -> None:
        """Put on disk what the sequence has beyond ``before``."""
        windows = _described(sequence.voices) if new_voices else ...
        self.journal.write(before, sequence._running.ledger, windows)

    def keep_state(self, sequence: AllOrNothing, due: int | None = None) -> None:
        """Now and then, keep the state of forecaster and weigher. Failing in this is no failure: rows are replayed."""
        number = len(sequence._running.ledger)
        if number < (self._due if due is None else due):
            return
        try:
            contents = _contents(sequence)
            self.journal.write_state(number, contents)
        except Exception:
            self._due = 2 * number
        else:
            self._kept, self._due = number, number + max(STATE_EVERY, len(contents) // STATE_BYTES_PER_ROW)

    def close(self, sequence: AllOrNothing) -> None:
        """Keep the state once more, and let go of the file."""
        if not self.journal.closed:
            self.keep_state(sequence, due=self._kept + 1)
            self.journal.close()

    def _read_into(self, sequence: ConfidenceSequence) -> None:
        journal = self.journal
        before = journal.extent()
        if before[1] == 0:  # a new journal: what "auto" means today is what it will mean
            journal.write(before, sequence._running.ledger, _described(sequence.voices))
        description = journal.windows()
        if description != _described(sequence.voices):
            chosen = None if description is None else piece_from("windows", description, None)
            sequence._take_voices(Undo(), chosen)
        shapes = (sequence.space.covariate_shape, sequence.family.observation_shape, (), (), (), (len(NOTHING),))
        try:
            rows = Rows(*journal.rows(shapes)).checked(sequence.family, sequence.space)
        except ValueError as error:
            raise FileFormatError(f"{journal.path} is damaged: {error}; restore it from a backup.") from error
        self._kept = self._restored(sequence, rows)
        _continue(sequence, rows, self._kept)
        self.keep_state(sequence, due=self._kept + STATE_EVERY)
        self._due = max(self._due, self._kept + STATE_EVERY)

    def _restored(self, sequence: ConfidenceSequence, rows: Rows) -> int:
        """Take over the state kept in the journal; of how many rows it is, 0 if there is none that can be used."""
        kept = self.journal.state()
        if kept is not None and kept[0] <= len(rows.x):
            try:
                _begin(sequence)
                _restore(sequence, rows, *kept)
                return kept[0]
            except Exception:  # damaged, of another release, of another machine's basis: the rows are enough
                pass
        _begin(sequence)
        return 0


def _begin(sequence: ConfidenceSequence) -> None:
    """The sequence as it is before any row."""
    running = sequence._running
    running.ledger = Ledger(sequence.family, sequence.space.covariate_shape)
    running.basis = sequence.space.start()
    running.membership = None if sequence.voices is None else sequence.voices.start(sequence.space)
    running.alarm = sequence._fresh_alarm()
    running.directions = (
        None if sequence.voices is None else sequence.voices.directions(sequence.family, sequence.space)
    )
    for role in PIECES:
        piece = fresh(role, sequence)
        own = role in sequence._own_roles  # a copy, so that the one passed in stays the user's
        setattr(running, role, copied(piece, sequence.family, sequence.space) if own else piece)


def _continue(sequence: ConfidenceSequence, rows: Rows, start: int) -> None:
    """Record the rows from number ``start`` on, as they were scored, and show them to forecaster and weigher."""
    running = sequence._running
    ledger = running.ledger
    asked = [running.gauge] if running.gauge is not None else []
    if "forecaster" not in sequence._own_roles:  # a forecast moves the warm starts of built-in ones
        asked.append(running.forecaster)
    left = zip(*(part[start:] for part in rows.parts()), strict=True)
    for x, y, weight, log_q, label, given in counted(left, len(rows.x) - start, "taking rows up again"):
        running.basis, phi = ledger.embed(running.basis, x, Given(*given.tolist()))
        if running.membership is not None and ledger.group(phi.index, int(label)) is None:
            running.membership = running.membership.including(x, int(label))
        for piece in asked:
            piece.forecast(phi)
        ledger.append(phi, y, float(weight), float(log_q), int(label))
        if running.directions is not None:
            running.directions.record(running.basis, phi, y, float(weight))
        if running.alarm is not None:
            running.alarm.record(phi, y, float(weight), float(log_q), running.believed(phi))
        for piece in running.pieces():
            piece.observe(phi, y)


def _contents(sequence: AllOrNothing) -> bytes:
    """All that follows from the rows, as arrays."""
    running = sequence._running
    groups = {"ledger": {k: v for k, v in running.ledger.state().items() if k not in _IN_ROWS}}
    groups["basis"] = running.basis.state()
    for role in PIECES:
        piece = getattr(running, role)
        if piece is None:
            continue
        if not has_state(piece):
            raise PieceError("a piece without a state observes the rows again")
        groups[role] = state_of(piece)
    arrays: dict[str, Any] = {f"{group}/{name}": a for group, state in groups.items() for name, a in state.items()}
    if running.membership is not None:
        arrays["windows/masks"] = running.membership.masks
    if running.directions is not None:
        arrays |= {f"directions/{name}": array for name, array in running.directions.state().items()}
    if running.alarm is not None:
        arrays |= {f"alarm/{name}": array for name, array in running.alarm.state().items()}
    stream = io.BytesIO()
    np.savez(stream, made_by=np.array(_MADE_BY), **arrays)
    return stream.getvalue()


def _restore(sequence: ConfidenceSequence, rows: Rows, number: int, contents: bytes) -> None:
    """The inverse of ``_contents``; any exception if it is not."""
    running = sequence._running
    kept = ("ledger", "basis", "windows", "directions", "alarm", *PIECES)
    groups: dict[str, dict[str, Array]] = {group: {} for group in kept}
    with np.load(io.BytesIO(contents), allow_pickle=False) as archive:
        if str(archive["made_by"]) != _MADE_BY:
            raise ValueError("made by another release")
        for entry in archive.files:
            if entry != "made_by":
                group, name = entry.split("/", 1)
                groups[group][name] = archive[entry]
    known: dict[bytes, int] = {}
    x, y, weights, log_q, classes, given = (part[:number] for part in rows.parts())
    covariate = np.array([known.setdefault(row.tobytes(), len(known)) for row in x], dtype=np.float64)
    running.ledger.restore(
        {"x": x, "y": y, "weights": weights, "log_q": log_q, "classes": classes, "given": given}
        | {"covariate": covariate}
        | groups["ledger"]
    )
    running.basis = sequence.space.restore(groups["basis"])
    count, dimension = running.ledger.merged.count, running.basis.dimension
    if count != len(known) or running.ledger.merged.dimension != dimension:
        raise ValueError("not the state of these rows")
    if running.membership is not None:
        masks = {"masks": groups["windows"]["masks"].astype(np.float64)}
        of_groups = running.ledger.distinct.rows[running.ledger.owners.rows.astype(np.int64)]
        running.membership = running.membership.restored(masks, of_groups)
    if running.directions is not None:
        running.directions.restore(groups["directions"])
    if running.alarm is not None:
        running.alarm.restore(groups["alarm"])
    for role in PIECES:
        piece: Any = getattr(running, role)
        if piece is None:
            continue
        piece.restore(groups[role])
        if hasattr(piece, "fits") and not piece.fits(count, dimension):
            raise ValueError(f"not the {role} of these rows")


def _described(windows: Any) -> Any:
    description = None if windows is None else json.loads(json.dumps(describe(windows)))
    if description is not None and "own" in description:
        raise LikesetError(f"{windows!r} cannot be written to a journal; use Windows(...) or None.")
    return description
