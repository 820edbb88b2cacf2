"""Formulas as MathML, which browsers draw by themselves: no script, no network, no font to load."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from latex2mathml.exceptions import (
    DenominatorNotFoundError,
    DoubleSubscriptsError,
    DoubleSuperscriptsError,
    ExtraLeftOrMissingRightError,
    MissingEndError,
    NumeratorNotFoundError,
)
from sphinx.application import Sphinx
from sphinx.util import logging

_logger = logging.getLogger(__name__)
_BROKEN = (
    DenominatorNotFoundError,
    DoubleSubscriptsError,
    DoubleSuperscriptsError,
    ExtraLeftOrMissingRightError,
    MissingEndError,
    NumeratorNotFoundError,
)


def _formula(node: nodes.Element, display: str) -> str:
    try:
        return str(convert(node.astext(), display=display))
    except _BROKEN as error:
        _logger.warning("a formula cannot be read (%s): %s", type(error).__name__, node.astext(), location=node)
        return ""


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(_formula(node, "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<div class="formula" tabindex="0" role="math">{_formula(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
