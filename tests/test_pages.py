"""What pages say of the code: tests that they name are there, commands that they give exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def named_tests(page: str) -> list[tuple[str, str]]:
    return re.findall(r"\b(test_\w+\.py)::(test_\w+)", page)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_tests_named_on_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    for file in re.findall(r"\btests/(test_\w+\.py)", text):
        assert (ROOT / "tests" / file).is_file(), file
    for file, name in named_tests(text):
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_every_row_of_the_page_on_correctness_has_a_test_that_must_fail():
    page = (ROOT / "docs" / "correctness.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("| ") and "what must fail it" not in line]
    traced = [line for line in page.split("by row")[1].split("## ")[0].split("\n* ")[1:] if named_tests(line)]
    assert len(table) == len(traced) >= 12
    assert all(line.rsplit("|", 2)[1].strip() for line in table)


def test_commands_given_on_pages_exist():
    """Every `likeset NAME` in backticks, a block of shell or a table is a command of the program."""
    from typer.main import get_command

    from likeset.cli import app
    from likeset.paper.experiments.figures import figures

    commands = get_command(app).commands  # type: ignore[attr-defined]
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"(?:`|^)likeset ([a-z][a-z-]*)", text, flags=re.MULTILINE):
            assert name in commands, f"{page.name}: likeset {name}"
        for figure in re.findall(r"(?:`|^)likeset reproduce ([a-z]\w*)", text, flags=re.MULTILINE):
            assert figure in {*figures(), "all"}, f"{page.name}: likeset reproduce {figure}"


def test_every_claim_of_the_paper_is_on_the_map():
    from likeset.paper.experiments import claims, judging

    page = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if "`likeset reproduce " in line]
    for claim in claims.CLAIMS:
        if claim.group == judging.THE_PAPER:
            found = [line for line in rows if f"| {claim.statement} |" in line]
            assert len(found) == 1 and f"`likeset reproduce {claim.figure}`" in found[0], claim.statement
