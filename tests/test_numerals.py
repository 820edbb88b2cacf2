"""Numbers as they are shown: never to the other side of what they say."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np

from likeset.study.findings import findings
from likeset.study.numerals import evidence, interval, number, p_value


def ends(text):
    return [Decimal(end.replace(",", "")) for end in re.fullmatch(r"[\[(](.*), (.*)[\])]", text).groups()]


def test_intervals_are_shown_outward_and_on_their_side():
    """Rounded away from each other, however many digits it takes to stay on the side of zero and of one."""
    rng = np.random.default_rng(0)
    for _ in range(5000):
        low, high = np.sort(rng.normal(size=2) * 10.0 ** rng.integers(-6, 7, size=2)).tolist()
        shown_low, shown_high = ends(interval(low, high))
        assert shown_low <= Decimal(repr(low)) and shown_high >= Decimal(repr(high))
        for neutral in (0, 1):
            assert (shown_low > neutral) == (low > neutral) and (shown_high < neutral) == (high < neutral)


def test_intervals_show_three_digits_of_their_width():
    for low, high in ((0.0513, 0.2002), (-0.0197, 0.249), (1428.2, 1564.9), (4.009, 7.348)):
        shown_low, shown_high = ends(interval(low, high))
        assert float(shown_high - shown_low) <= 1.021 * (high - low)
        assert len(interval(low, high)) <= 16


def test_ends_that_are_just_excluded_or_missing():
    assert interval(math.nextafter(0, 1), 3.0) == "(0, 3.00]" and interval(0.5, math.nextafter(1, 0)) == "[0.500, 1)"
    assert interval(None, -3e-7) == "[-∞, -3e-07]" and interval(None, None) == "[-∞, ∞]"


def test_evidence_never_crosses_the_limit():
    rng = np.random.default_rng(1)
    for e in [*(20 + rng.normal(size=500) * 10.0 ** rng.integers(-9, 1, size=500)), 20.0]:
        shown, p = float(evidence(e, 20.0).replace(",", "")), float(p_value(1 / e, 0.05))
        assert (shown > 20.0) == (e > 20.0) and (p < 0.05) == (1 / e < 0.05)


def test_large_numbers_have_no_exponents():
    assert [number(v) for v in (1234567.0, 1e8, 0.00012)] == ["1,234,567", "100,000,000", "0.00012"]


def test_what_is_found_says_by_how_much_and_to_which_side():
    made = {"outcome": "days", "units": "days", "goal": "minimise", "margin": None, "control": {"w": "old"}}
    line = {"factor": "w", "level": "new", "kind": "level", "n": 9, "verdict": "better"}

    def said(**values):
        (found,) = findings({"rows": [line | values], "definition": made})
        return found["said"]

    assert said(difference_lower=-3.0, difference_upper=-0.5) == (
        "is better than old: days is lower by 0.50 to 3.00 on average"
    )
    assert said(difference_lower=None, difference_upper=-0.5).endswith("lower by at least 0.5 on average")
    assert said(difference_lower=-3.0, difference_upper=math.nextafter(0, -1)).endswith("by at most 3.00 on average")
    assert said(verdict="not yet", n=0, difference_lower=None, difference_upper=None).endswith("it has no rows")
    constant = {**line, "level": "(constant)", "kind": "coefficient"}
    assert findings({"rows": [constant], "definition": made}) == []
