"""How a claim is judged: a function answers it panel by panel, and a quick run takes back what is not final."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from likeset.paper.experiments.evidence import NO, NOT_REFUTED, UNCLEAR, YES, Answer, together
from likeset.paper.experiments.figures import Scale
from likeset.paper.experiments.tables import Table

THE_PAPER, OURS, CONTROL = "the paper", "ours", "control"
GROUPS = {THE_PAPER: "Claims of the paper", OURS: "Claims of ours", CONTROL: "Controls"}

COMPARISON: frozenset[str] = frozenset()
FACT = frozenset({YES, NO})
COVERAGE = frozenset({NO})
FAILURE = frozenset({YES})
"""Which answers of a quick run are final. Comparisons may turn with more rounds; misses beyond chance remain misses."""


@dataclass(frozen=True)
class Claim:
    """A claim, the figure it belongs to, and the function that answers it panel by panel."""

    figure: str
    statement: str
    answer: Callable[[Table], Iterable[Answer]]
    group: str = THE_PAPER
    final_when_quick: frozenset[str] = COMPARISON


@dataclass(frozen=True)
class Finding:
    """A claim with what was measured; ``kind`` is "yes", "no" or "open"."""

    figure: str
    statement: str
    measured: tuple[str, ...]
    """One line per panel."""
    verdict: str
    kind: str
    command: str
    group: str = THE_PAPER


def judged(claims: Iterable[Claim], tables: Mapping[str, Table], scale: Scale) -> list[Finding]:
    """What became of claims about the figures that were run."""
    flags = (" --quick" if scale.quick else "") + (f" --repeats {scale.repeats}" if scale.repeats is not None else "")
    flags += f" --seed {scale.seed}" if scale.seed else ""
    findings = []
    for claim in claims:
        table = tables.get(claim.figure)
        if table is None or len(table) == 0:
            continue
        answers = list(claim.answer(table))
        verdict, kind = _of_a_quick_run(claim, answers) if scale.quick else together(answers)
        measured = tuple(f"{a.panel}: {a.detail}" for a in answers)
        command = f"likeset reproduce {claim.figure}{flags}"
        findings.append(Finding(claim.figure, claim.statement, measured, verdict, kind, command, claim.group))
    return findings


def _of_a_quick_run(claim: Claim, answers: list[Answer]) -> tuple[str, str]:
    """The verdict with what is not final taken back: a quick run never points elsewhere without saying "undecided"."""
    taken_back = {YES: NOT_REFUTED if claim.final_when_quick == COVERAGE else UNCLEAR, NO: UNCLEAR}
    for final in claim.final_when_quick:
        del taken_back[final]
    verdict, kind = together([replace(a, holds=taken_back.get(a.holds, a.holds)) for a in answers])
    if any(a.holds in taken_back for a in answers):
        verdict = f"{verdict} (quick run); so far: {together(answers)[0]}"
    return verdict, kind
