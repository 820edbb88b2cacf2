"""Messages of the command line that quote names and texts of the user's own, letter by letter."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


def say(console: Console, text: str, style: str = "") -> None:
    """Print a text as it is: no markup, emoji, colours of numbers or line breaks; what cannot be printed is escaped.

    >>> say(Console(), "Report: out [b]/:smile: 'x'")
    Report: out [b]/:smile: 'x'
    """
    printable = text.encode(console.encoding, "backslashreplace").decode(console.encoding)
    console.print(Text(printable, style=style), soft_wrap=True)
