"""Docstrings are plain text, written to be read where they stand; this makes pages of them.

Paragraphs are separated by blank lines. What is indented is a formula, and is shown as it is. Rows ``name   text`` (two
blanks or more between; continued lines are indented) are a list of definitions. The rest is prose in which only
``literals``, *emphasis* and references mean something: |theta|, theta* and x_s are letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

_MARKUP = re.compile(
    r"``.+?``|:[a-z:]+:`[^`]+`|(?<![\w*^])\*[A-Za-z][^*|=^]*?[A-Za-z.]\*(?![\w*])|`[^`]+`_", flags=re.DOTALL
)
_ROW = re.compile(r"^(\S+(?:,? \S+){0,3}?)(?:\s{2,}| : )(\S.*)$")


def as_rst(lines: list[str]) -> list[str]:
    """The same docstring in reStructuredText."""
    out: list[str] = []
    for block in _blocks(lines):
        out += [*_block(block), ""]
    return out


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _block(block: list[str]) -> list[str]:
    first = block[0]
    if first.lstrip().startswith(">>>"):
        return [line.strip() if line.strip().startswith(">>>") else line for line in block]
    if len(block) > 1 and set(block[1].strip()) == {"-"}:  # a heading
        return [f"**{first.strip()}**", "", *_block(block[2:])] if block[2:] else [f"**{first.strip()}**"]
    if first.startswith("    "):
        return [".. code-block:: text", "", *("    " + line[4:] for line in block)]
    if first.startswith("* "):
        return escaped("\n".join(block)).split("\n")
    if all(_ROW.match(line) for line in block if not line.startswith(" ")):
        return _definitions(block)
    return escaped(" ".join(line.strip() for line in block)).split("\n")


def _definitions(block: list[str]) -> list[str]:
    out: list[str] = []
    for line in block:
        row = _ROW.match(line)
        if row and not line.startswith(" "):
            out.append([row.group(1), row.group(2)])  # type: ignore[arg-type]
        else:
            out[-1][1] += " " + line.strip()  # type: ignore[index]
    lines: list[str] = []
    for name, text in out:
        lines += [f"``{name.strip('`')}``", f"    {escaped(text)}", ""]
    return lines


def escaped(text: str) -> str:
    """Prose with everything escaped that is not markup."""
    parts, position = [], 0
    for found in _MARKUP.finditer(text):
        parts += [_letters(text[position : found.start()]), found.group()]
        position = found.end()
    return "".join([*parts, _letters(text[position:])])


def _letters(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")
    text = re.sub(r"(?<!^)(?<!\n)\*", r"\\*", text)
    return re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)


def _process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines)


def readable(signature: str) -> str:
    """A signature in which names of types are names: Sphinx writes aliases beside ``| None`` as it holds them.

    >>> readable("(x: TypeAliasForwardRef('Array') | None) -> None")
    '(x: Array | None) -> None'
    """
    return re.sub(r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1", signature)


def _signature(app: Sphinx, what: str, name: str, obj: Any, options: Any, given: Any, returned: Any) -> Any:
    if given is None:  # a property: nothing to write
        return None
    return readable(given), returned if returned is None else readable(returned)


def setup(app: Sphinx) -> dict[str, Any]:
    """Has autodoc pass every docstring through :func:`as_rst`, and signatures through :func:`readable`."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _signature)
    return {"version": "1", "parallel_read_safe": True}
