"""A number of a family that nobody knows: the scale of the noise, the shape of a law of lifetimes."""

from __future__ import annotations

from math import inf
from typing import Any

from likeset.arguments import positive
from likeset.errors import InvalidArgumentError


class Unknown:
    """Stands where a family wants a number that is not known, only that it lies in [lo, hi]; both may be left out.

    The set then lives in (theta, nuisance), and what it says of theta holds for every value that the number may have.

    >>> Unknown(), Unknown(0.1), Unknown(0.1, 3.0), Unknown(hi=3.0)
    (Unknown(), Unknown(lo=0.1), Unknown(lo=0.1, hi=3), Unknown(hi=3))
    """

    def __init__(self, lo: float | None = None, hi: float | None = None) -> None:
        self.lo = 0.0 if lo is None or _is_zero(lo) else positive("lo", lo)
        self.hi = inf if hi is None else positive("hi", hi, infinite=True)
        if not self.lo < self.hi:
            raise InvalidArgumentError(
                "hi", hi, f"is not above lo = {self.lo:g}", "pass lo < hi, or the number itself if it is known"
            )

    def __repr__(self) -> str:
        ends = [f"lo={self.lo:g}"] * (self.lo > 0.0) + [f"hi={self.hi:g}"] * (self.hi < inf)
        return f"Unknown({', '.join(ends)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown) and (self.lo, self.hi) == (other.lo, other.hi)

    def __hash__(self) -> int:
        return hash((self.lo, self.hi))

    def checked(self, name: str, value: Any) -> float:
        """A value the number may have, or a typed error."""
        number = positive(name, value)
        if not self.lo <= number <= self.hi:
            raise InvalidArgumentError(name, value, f"is outside [{self.lo:g}, {self.hi:g}]", "pass a possible value")
        return number


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0
