"""Numbers as people read them: few digits, ends of intervals rounded outward, never to the other side of a verdict."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_JUST_ABOVE = [math.nextafter(neutral, math.inf) for neutral in (0.0, 1.0)]
_JUST_BELOW = [math.nextafter(neutral, -math.inf) for neutral in (0.0, 1.0)]
_MOST_DECIMALS = 9
_LARGE, _SMALL = 1e9, 1e-4
_OF_WIDTH = 2  # digits of the width that an interval shows beside its first


def number(value: float | None, digits: int = 4) -> str:
    """A number that can be read.

    >>> [number(v) for v in (0.12345, 1234567.0, 3.0, None, 4e-5, 0.0, 1496.8)]
    ['0.1235', '1,234,567', '3', '', '4e-05', '0', '1,497']
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and not _SMALL <= abs(value) < _LARGE:
        return f"{value:.{digits}g}"
    places = max(digits - 1 - _exponent(value), 0) if value else 0
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimals(low: float | None, high: float | None) -> int | None:
    """So many decimals that an interval shows three digits of its width; None where it has no width to go by."""
    if low is None or high is None or not 0.0 < high - low < math.inf:
        return None
    return min(max(_OF_WIDTH - _exponent(high - low), 0), _MOST_DECIMALS)


def beside(value: float | None, low: float | None, high: float | None) -> str:
    """An estimate with the digits of its interval.

    >>> beside(0.11148, 0.05135, 0.20028), beside(0.11148, None, 0.2)
    ('0.111', '0.1115')
    """
    places = decimals(low, high)
    if value is None or not math.isfinite(value) or places is None or abs(value) >= _LARGE:
        return number(value)
    return f"{value:,.{places}f}"


def interval(low: float | None, high: float | None) -> str:
    """[low, high], rounded outward; an end that is missing is infinite, one that is just excluded has a round bracket.

    An end above or below zero, or one, is shown above or below it, with as many digits as that takes.

    >>> interval(0.05135, 0.20028), interval(1428.2, 1564.9), interval(0.0, 1.0)
    ('[0.051, 0.201]', '[1,428, 1,565]', '[0, 1]')
    >>> interval(0.25, None), interval(math.nextafter(0.0, 1.0), 0.5), interval(0.000734, 0.2186)
    ('[0.25, ∞]', '(0, 0.500]', '[0.0007, 0.219]')
    """
    before = "(" if low in _JUST_ABOVE else "["
    after = ")" if high in _JUST_BELOW else "]"
    ends = [None if low is None else float(low), None if high is None else float(high)]
    if before == "(":
        ends[0] = float(round(ends[0] or 0.0))
    if after == ")":
        ends[1] = float(round(ends[1] or 0.0))
    wanted = decimals(low, high)
    shown = [_outward(end, wanted, side) for end, side in zip(ends, (ROUND_FLOOR, ROUND_CEILING), strict=True)]
    return f"{before}{shown[0] or '-∞'}, {shown[1] or '∞'}{after}"


def _outward(end: float | None, wanted: int | None, side: str) -> str:
    """An end rounded away from the other one, with so many decimals, or more if it would reach zero or one."""
    if end is None or math.isinf(end):
        return ""
    exact = Decimal(repr(end))
    tried = max(3 - _exponent(end), 0) if end and wanted is None else wanted or 0
    for places in range(tried, _MOST_DECIMALS if abs(end) < _LARGE else 0):
        rounded = exact.quantize(Decimal(1).scaleb(-places), side)
        if all((exact > c) == (rounded > c) and (exact < c) == (rounded < c) for c in (0, 1)):
            text = str(int(rounded)) if rounded in (0, 1) else f"{rounded:,f}"
            return text.rstrip("0").rstrip(".") if wanted is None and "." in text else text
    digits = 17 if abs(end - 1.0) < 1e-6 else 4  # what is next to one is shown beside it
    return f"{float(Context(digits, side).plus(exact)):.{digits}g}"


def evidence(e_value: float | None, limit: float) -> str:
    """An e-value with three digits, or more where fewer would move it across the limit; next to nothing is said so.

    >>> evidence(2.2578, 20.0), evidence(20.004, 20.0), evidence(3.4e12, 20.0), evidence(2e-31, 20.0)
    ('2.26', '20.004', '3.4e+12', '< 0.01')
    """
    if e_value is None:
        return ""
    if e_value < 0.01:
        return "< 0.01"
    return f"{e_value:.2g}" if e_value >= 1e6 else _on_its_side(e_value, limit, 3)


def p_value(p: float | None, alpha: float) -> str:
    """A p-value with two digits, or more where fewer would move it across alpha.

    >>> p_value(0.0388, 0.05), p_value(0.0499, 0.05), p_value(3.4e-12, 0.05), p_value(1.0, 0.05)
    ('0.039', '0.0499', '3.4e-12', '1')
    """
    return "" if p is None else _on_its_side(p, alpha, 2)


def _on_its_side(value: float, limit: float, digits: int) -> str:
    for more in range(digits, 15):
        shown = float(f"{value:.{more}g}")
        if (shown > limit) == (value > limit) and (shown < limit) == (value < limit):
            return number(value, more) if value >= _SMALL else f"{value:.{more}g}"
    return f"{value:.15g}"


def _exponent(value: float) -> int:
    """Of the first digit, once the value is rounded to a few."""
    return math.floor(math.log10(abs(float(f"{value:.6g}"))))
