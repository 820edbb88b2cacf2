"""Named arrays and lists of texts as bytes, and back, bit for bit: a JSON line of names, types and shapes, then the
contents.

>>> unpacked(packed({"x": np.array([[1.0, 2.0]]), "key": ["a", "b"]}))
{'x': array([[1., 2.]]), 'key': ['a', 'b']}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_NUMBERS, _TEXTS = "<f8", "json"


def packed(parts: Mapping[str, Any]) -> bytes:
    """Arrays become float64; lists are kept as JSON."""
    entries, contents = [], []
    for name, part in parts.items():
        if isinstance(part, np.ndarray):
            data = np.ascontiguousarray(part, dtype=_NUMBERS).tobytes()
            entries.append([name, _NUMBERS, list(part.shape), len(data)])
        else:
            data = json.dumps(part, ensure_ascii=False).encode("utf-8", "surrogatepass")
            entries.append([name, _TEXTS, [len(part)], len(data)])
        contents.append(data)
    return b"".join([json.dumps(entries).encode(), b"\n", *contents])


def unpacked(data: bytes) -> dict[str, Any]:
    """The inverse of ``packed``; ValueError (or KeyError, TypeError) if it is not."""
    end = data.index(b"\n")
    found: dict[str, Any] = {}
    place = end + 1
    for name, kind, shape, size in json.loads(data[:end]):
        part = data[place : place + size]
        place += size
        if len(part) != size:
            raise ValueError("the contents are cut off")
        if kind == _NUMBERS:
            if any(n < 0 for n in shape) or 8 * math.prod(shape) != size:
                raise ValueError(f"{name} has not the shape {shape}")
            found[name] = np.frombuffer(part, dtype=_NUMBERS).astype(np.float64).reshape(shape)
        else:
            found[name] = json.loads(part.decode("utf-8", "surrogatepass"))
    if place != len(data):
        raise ValueError("there is more than was written")
    return found
