"""Names that are nearly right: what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from likeset.errors import _brief

_LONGEST = 80  # characters that are compared


def near(word: object, known: Iterable[object]) -> str:
    """The known word that was probably meant, as the end of a sentence; nothing where none is near.

    >>> near("convertd", ["user", "converted"]), near("b ", ["A", "B"]), near("x", ["A", "B"])
    (" (did you mean 'converted'?)", " (did you mean 'B'?)", '')
    """
    words = {str(one).strip().casefold(): one for one in known}
    found = difflib.get_close_matches(str(word).strip().casefold()[:_LONGEST], list(words), 1, 0.7)
    return f" (did you mean {_brief(words[found[0]])}?)" if found else ""
