r"""Formulas such as ``~ age + C(ward)``, frozen: the design's columns depend on the definition alone, never on the
rows.

Formulaic parses the formula and makes the columns. Whatever it would learn from data (levels, centres, scales, knots)
it
learns from a frame that is part of the definition: every level declared, the ends of intervals, or the frame given as
``like``. A formula in a store may be anybody's, and Formulaic evaluates Python: only arithmetic and a few functions of
columns are let through.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError
from likeset.extras import optional_packages
from likeset.study.factors import Factor, Levels, Number
from likeset.study.frames import Columns

LEARNING = frozenset({"center", "scale", "standardize", "bs", "cs", "cr", "cc", "poly"})  # what they learn is frozen
PLAIN = frozenset({"log", "log10", "log2", "log1p", "exp", "expm1", "sqrt", "abs", "sin", "cos", "I", "C", "Q"})
_NODES = (
    ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.keyword,
    ast.List, ast.Tuple, ast.operator, ast.unaryop, ast.cmpop, ast.Attribute,
)  # fmt: skip
_LONGEST = 2000


class Formula:
    """A frozen formula: ``variables`` (columns it needs), ``columns`` (of the design), ``encoded(recorded)``."""

    def __init__(self, text: str, factors: tuple[Factor, ...], like: Mapping[str, list[float]]) -> None:
        with optional_packages():
            import formulaic
        self.text = text
        parsed = _parsed(text, formulaic)
        used = _inspected(text, parsed)
        declared = {f.name: f for f in factors}
        unused = [name for name in declared if name not in used["all"]]
        if unused:
            raise InvalidArgumentError("factors", unused, "do not occur in the formula", "leave them out")
        self.factors: tuple[Factor, ...] = tuple(declared.get(name) or Number(name) for name in sorted(used["all"]))
        for f in self.factors:
            if f.name in used["C"] and not isinstance(f, Levels):
                raise InvalidArgumentError(
                    "formula", text, f"has levels of {f.name!r} that are not declared",
                    f"name them: factors={{{f.name!r}: [...]}}, in a shell --by {f.name}, or pass like=",
                )  # fmt: skip
            if f.name in used["learning"] and isinstance(f, Number) and f.low == -np.inf and f.name not in like:
                raise InvalidArgumentError(
                    "formula", text, f"would learn from the rows how to transform {f.name!r}",
                    f"fix it beforehand: factors={{{f.name!r}: (low, high)}}, or pass like= with typical values",
                )  # fmt: skip
        try:
            matrix = parsed.get_model_matrix(self._example(like), context={}, na_action="raise", output="pandas")
            self._spec = matrix.model_spec
            self.columns = tuple(map(str, self._spec.column_names))
        except Exception as error:
            raise InvalidArgumentError(
                "formula", text, f"cannot be used ({type(error).__name__}: {error})", "see formulaic's grammar"
            ) from None
        if not self.columns:
            raise InvalidArgumentError("formula", text, "has no terms", 'write e.g. "~ age + C(ward)"')

    def encoded(self, recorded: Mapping[str, Array]) -> Array:
        """The design matrix; entries that are no numbers are NaN or infinite."""
        import pandas

        with np.errstate(all="ignore"):
            frame = pandas.DataFrame({f.name: self._column(f, recorded[f.name]) for f in self.factors})
            matrix = self._spec.get_model_matrix(frame, context={}, na_action="ignore", output="numpy")
        return np.asarray(matrix, dtype=np.float64).reshape(len(frame), len(self.columns))

    @staticmethod
    def _column(f: Factor, recorded: Array) -> Any:
        if isinstance(f, Levels):
            import pandas

            return pandas.Categorical.from_codes(recorded.astype(int), categories=list(f.values))
        return recorded

    def _example(self, like: Mapping[str, list[float]]) -> Any:
        """The frame that transforms learn from: every level, the ends of every interval, or what was given."""
        import pandas

        given = max((len(v) for v in like.values()), default=0)
        count = max([2, given, *(len(f.values) for f in self.factors if isinstance(f, Levels))])
        cells: dict[str, Any] = {}
        for f in self.factors:
            if isinstance(f, Levels):
                cells[f.name] = self._column(f, np.arange(float(count)) % len(f.values))
            elif f.name in like:
                cells[f.name] = np.resize(np.array(like[f.name]), count)
            elif isinstance(f, Number) and np.isfinite(f.low):
                cells[f.name] = np.linspace(f.low, f.high, count)
            else:
                cells[f.name] = np.ones(count)
        return pandas.DataFrame(cells, index=range(count))


def like_columns(text: str, factors: tuple[Factor, ...], frame: Columns) -> tuple[tuple[Factor, ...], dict[str, Any]]:
    """What a frame given as ``like`` says about the variables of a formula: levels of texts, typical numbers."""
    with optional_packages():
        import formulaic
    used = _inspected(text, _parsed(text, formulaic))
    declared, numbers = {f.name: f for f in factors}, {}
    for name in sorted(used["all"]):
        if name in declared or name not in frame.cells:
            continue
        try:
            array = frame.numbers(name)
        except InvalidArgumentError:
            array = None
        if array is None or name in used["C"]:
            values = frame.values(name)
            declared[name] = Levels(name, tuple(sorted(set(values), key=lambda v: (str(type(v)), v))))
        elif name in used["learning"]:
            numbers[name] = array.tolist()
    return tuple(declared.values()), numbers


def _parsed(text: Any, formulaic: Any) -> Any:
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise InvalidArgumentError("formula", text, "is no formula", 'write e.g. "~ age + C(ward)"')
    try:
        parsed = formulaic.Formula(text)
        terms = list(parsed)
        if not all(hasattr(term, "factors") for term in terms):
            raise ValueError("it has a left side or several parts")
    except Exception as error:
        raise InvalidArgumentError(
            "formula",
            text,
            f"cannot be read ({type(error).__name__}: {error})",
            'write e.g. "~ age + C(ward)", without y',
        ) from None
    return parsed


def _inspected(text: str, parsed: Any) -> dict[str, set[str]]:
    """Variables used at all, as categories, and by transforms that learn; refuses what is more than arithmetic."""
    used: dict[str, set[str]] = {"all": set(), "C": set(), "learning": set()}
    for term in parsed:
        for piece in term.factors:
            method = str(piece.eval_method.value)
            if method == "lookup":
                used["all"].add(piece.expr.strip("`"))
            elif method == "python":
                _walk(text, _tree(text, piece.expr), used, ())
    return used


def _tree(text: str, expression: str) -> ast.AST:
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidArgumentError(
            "formula", text, f"has {expression[:60]!r} in it", "use plain column names"
        ) from None


def _walk(text: str, node: ast.AST, used: dict[str, set[str]], calls: tuple[str, ...]) -> None:
    if not isinstance(node, _NODES) or isinstance(node, ast.Attribute):
        raise _refused(text, ast.unparse(node))
    if isinstance(node, ast.Call):
        function = node.func
        plain = (
            isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "np"
        )
        name = function.attr if plain and isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name not in PLAIN | LEARNING or (plain and name in {"I", "C", "Q"}):
            raise _refused(text, ast.unparse(function))
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            _walk(text, argument, used, (*calls, name))
        return
    if isinstance(node, ast.Name):
        used["all"].add(node.id)
        if "C" in calls:
            used["C"].add(node.id)
        if LEARNING.intersection(calls):
            used["learning"].add(node.id)
    for child in ast.iter_child_nodes(node):
        _walk(text, child, used, calls)


def _refused(text: str, what: str) -> InvalidArgumentError:
    allowed = ", ".join(sorted(PLAIN | LEARNING))
    return InvalidArgumentError("formula", text, f"calls or names {what[:60]!r}", f"use arithmetic and {allowed}")
