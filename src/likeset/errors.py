"""Typed errors: each names the argument, shows the offending value and says what to do instead."""

from __future__ import annotations

import pickle
import reprlib
from os import PathLike
from typing import Any


class LikesetError(Exception):
    """Base class of every error raised on purpose by likeset.

    Errors travel between processes: message and attributes are pickled as they are, without calling the constructor
    again; an attribute that cannot be pickled (a lambda as the offending value) arrives as its ``repr``.

    >>> sent = pickle.dumps(InvalidArgumentError("kernel", lambda x: x, "has one argument", "pass k(X, Y)"))
    >>> error = pickle.loads(sent)
    >>> type(error).__name__, error.argument, error.value[:9]
    ('InvalidArgumentError', 'kernel', '<function')
    """

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = {name: _portable(value) for name, value in self.__dict__.items()}
        return _received, (type(self), tuple(map(_portable, self.args)), attributes)


class InvalidArgumentError(LikesetError, ValueError):
    """An argument is unusable. Nothing was recorded or changed.

    Attributes: ``argument`` (its name), ``value`` (what was given), ``remedy`` (what to do).

    >>> raise InvalidArgumentError("alpha", 1.5, "is not strictly between 0 and 1", "use an error level such as 0.05")
    Traceback (most recent call last):
        ...
    likeset.errors.InvalidArgumentError: alpha = 1.5 is not strictly between 0 and 1; use an error level such as 0.05.
    """

    def __init__(self, argument: str, value: object, problem: str, remedy: str) -> None:
        self.argument = argument
        self.value = value
        self.problem = problem
        self.remedy = remedy
        # Paths are shown whole, as long as they are not absurd: their end is what tells one from another.
        limit = _PATH_LIMIT if isinstance(value, str | PathLike) else _LIMIT
        super().__init__(f"{argument} = {_brief(value, limit)} {problem[:_LONGEST]}; {remedy}.")


class ShapeError(InvalidArgumentError):
    """An array has the wrong number of dimensions or the wrong length."""


class ObservationError(InvalidArgumentError):
    """An observation y lies outside the support of the family."""


class PieceError(LikesetError, ValueError):
    """A predictor, weighting or family of the user's own broke the rules of validity.

    Raised before the observation is recorded: a weight outside [0, 1], a forecast that is not a
    probability density, a derivative that does not match its function.
    """


class EmptySetError(LikesetError):
    """No parameter in Theta is plausible any more.

    With probability at least 1 - alpha this never happens under a correct model, so an empty set is
    evidence at level alpha that the family, the bound or the space (kernel) is wrong.
    """

    def __init__(self, alpha: float, beaten: str = "") -> None:
        self.alpha = alpha
        said = f" ({beaten})" if beaten else ""
        super().__init__(
            f"the confidence set is empty: at level alpha = {alpha:g} the data refute the model{said}. "
            "Check the family and its scale, whether the bound on |theta| is too small, and the features or kernel; "
            "ask `is_empty` before querying a set that may be empty."
        )


class NotConvexError(LikesetError):
    """Exact extrema were asked of a family whose negative log-density is not convex in z."""


class NumericalError(LikesetError, ArithmeticError):
    """An identity that validity rests on does not hold to rounding: an answer was refused, nothing was changed."""


class MissingPackageError(LikesetError, ImportError):
    """Something was asked for that needs a package which is not installed; likeset works without it otherwise.

    Attributes: ``package``, ``extra`` (the extra of likeset that installs it).

    >>> raise MissingPackageError("matplotlib", "plots")
    Traceback (most recent call last):
        ...
    likeset.errors.MissingPackageError: this needs matplotlib, which is not installed: pip install "likeset[plots]".
    """

    def __init__(self, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(f'this needs {package}, which is not installed: pip install "likeset[{extra}]".')


class FileFormatError(LikesetError):
    """A saved file is damaged, truncated, of a newer version, or not a likeset file."""


class JournalError(LikesetError):
    """The journal of a durable sequence cannot be used: disk full, read-only, closed, opened before a fork.

    Raised by ``update`` when the rows could not be written; the sequence is then as it was before.
    """


class JournalInUseError(JournalError):
    """Another writer, in this process or another, has the journal open."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} is open for writing elsewhere; a journal has one writer: close it there first.")


class JournalMismatchError(JournalError, ValueError):
    """A journal was opened with another definition than the one it was made with.

    ``differences`` holds, for each argument that differs, what the journal says and what was given.
    """

    def __init__(self, path: str, differences: dict[str, tuple[Any, Any]]) -> None:
        self.path, self.differences = path, differences
        listed = "; ".join(f"{name}: {_brief(a)} there, {_brief(b)} here" for name, (a, b) in differences.items())
        super().__init__(f"{path} holds a sequence of another definition ({listed}); pass that one, or another path.")


class RowError(InvalidArgumentError):
    """A cell of a data frame cannot be used. Nothing of the frame was recorded.

    Attributes: ``column``, ``row`` (counted from 1; None where the whole column is meant), ``value``, ``remedy``.

    >>> raise RowError("age", 7, "young", "is not a number", "mend the cell, or leave the row out")
    Traceback (most recent call last):
        ...
    likeset.errors.RowError: age, row 7 = 'young' is not a number; mend the cell, or leave the row out.
    """

    def __init__(
        self, column: str, row: int | None, value: object, problem: str, remedy: str, line: int | None = None
    ) -> None:
        self.column, self.row, self.line = column, row, line
        place = "" if row is None else f", row {row}"
        super().__init__(f"{column}{place}" + ("" if line is None else f" (line {line})"), value, problem, remedy)
        if value is None and (row is None or problem != "is missing"):  # the whole column, or the whole row
            what = f"the column {_brief(column)}" if row is None and line is None else self.argument
            self.args = (f"{what} {problem[:_LONGEST]}; {remedy}.",)


class RestatedRowError(RowError):
    """A row came again under the same key with other contents; ``recorded`` and ``value`` hold both.

    Nothing changed.
    """

    def __init__(self, column: str, row: int, key: str, recorded: object, given: object) -> None:
        self.key, self.recorded = key, recorded
        super().__init__(
            column,
            row,
            given,
            f"restates the row recorded under the key {_brief(key)}, which is {_brief(recorded, 2 * _LIMIT)}",
            "what was counted stays counted: correct the new row, or give it a key of its own",
        )


class StoreError(LikesetError):
    """A store of studies cannot be used: disk full, read-only, busy, damaged rows. Nothing was recorded."""


class StudyMismatchError(StoreError, ValueError):
    """A study of this name exists with another definition; ``differences``: what is stored and what was given."""

    def __init__(self, name: str, path: str, differences: dict[str, tuple[Any, Any]]) -> None:
        self.name, self.path, self.differences = name, path, differences
        listed = "; ".join(f"{part}: {_brief(a)} there, {_brief(b)} here" for part, (a, b) in differences.items())
        super().__init__(
            f"{path} holds a study {_brief(name)} of another definition ({listed}); "
            "pass that definition, leave it out to continue the study, or take another name."
        )


class OrderWarning(UserWarning):
    """Rows seem to be in an order that depends on their outcomes: coverage would be lost."""


class RepeatedRowsWarning(UserWarning):
    """The same rows were told before, and without a key column they count twice."""


def _received(cls: type[LikesetError], args: tuple[Any, ...], attributes: dict[str, Any]) -> LikesetError:
    """An error as another process raised it."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


def _portable(value: Any) -> Any:
    """The value if it survives pickling, otherwise its repr."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    try:
        pickle.loads(pickle.dumps(value))  # some objects are written but cannot be read: a receiver would hang
    except Exception:
        return _brief(value)
    return value


_LIMIT = 80
_PATH_LIMIT = 240
_LONGEST = 1000  # of what is said about a value: messages of others are quoted there, and may quote the value


class _Brief(reprlib.Repr):
    """Short representations of anything, built without the long ones: an error message must not be an error itself."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxarray = (
            self.maxdeque
        ) = 40
        self.maxstring = self.maxlong = self.maxother = 4 * _LIMIT  # and so for paths

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to print integers of thousands of digits; their size says enough."""
        return repr(x) if x.bit_length() < 2048 else f"<an integer of about {int(x.bit_length() * 0.30103) + 1} digits>"

    def repr_bytes(self, x: bytes, level: int) -> str:
        """The beginning is enough."""
        return repr(x[: self.maxstring])

    def repr_instance(self, x: object, level: int) -> str:
        """What an object says of itself, or its type where that fails."""
        try:
            return repr(x)[: self.maxother]
        except Exception:
            return f"<{type(x).__name__} that cannot be shown>"


_briefly = _Brief()


def _brief(value: object, limit: int = _LIMIT) -> str:
    """At most ``limit`` characters that stand for a value, whatever it is."""
    try:
        text = " ".join(_briefly.repr(value).split())
    except Exception:
        text = f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= limit else text[: limit - 3] + "..."
