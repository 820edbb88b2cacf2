"""Names of problems for people: what is written in verdicts and tables instead of the keys of cells."""

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
