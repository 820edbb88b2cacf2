"""Words and numbers for people: what is written in verdicts and tables instead of the keys of cells."""

from __future__ import annotations

_WHOLE = {
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "survival": "survival",
    "poisson": "counts",
    "camelback-stated": "Camelback, B = 2",
    "camelback-contained": "Camelback, B = 8",
    "plane-gaussian": "Gaussian",
    "plane-laplace": "Laplace",
    "linear-laplace": "Laplace 0.1, d = 5",
    "linear-poisson": "counts, d = 3",
    "band": "band",
    "power-gaussian": "Gaussian",
    "power-poisson": "counts",
}
_PARTS = {
    "bandit": "bandit data",
    "iid": "i.i.d. data",
    "random": "random truth",
    "zero": "truth zero",
    "function": "function",
    "linear": "linear",
}


def panel(problem: str) -> str:
    """The name of a problem or a panel.

    >>> panel("bandit-random-0.01"), panel("poisson"), panel("function-0.05")
    ('bandit data, random truth, sigma 0.01', 'counts', 'function, sigma 0.05')
    """
    if problem in _WHOLE:
        return _WHOLE[problem]
    return ", ".join(_PARTS.get(part, f"sigma {part}") for part in problem.split("-"))


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "run"), counted(12, "run")
    ('1 run', '12 runs')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def amount(value: float) -> str:
    """Three figures, without powers of ten for large numbers.

    >>> amount(5298.3), amount(96.71), amount(0.000155)
    ('5,298', '96.7', '0.000155')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
