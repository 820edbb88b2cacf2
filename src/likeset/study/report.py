"""A report: one HTML file with everything in it, nothing fetched from anywhere."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Any

from likeset.errors import LikesetError
from likeset.study import wording
from likeset.study.database import now

if TYPE_CHECKING:
    from likeset.study.study import Study

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; color: #222;
  background: #fff; }}
h1 {{ margin-bottom: 0; }} .muted {{ color: #666; }} .table {{ overflow-x: auto; font-size: .9em; }}
figure {{ margin: 1.5rem 0; }} figure svg {{ max-width: 100%; height: auto; }} td, th {{ white-space: nowrap; }}
dt {{ font-weight: 600; }} dd {{ margin: 0 0 .5rem 0; overflow-wrap: anywhere; }}
</style></head><body>
<h1>{title}</h1><p class="muted">{when}</p>
<div class="table">{answers}</div>
{pictures}
<h2>How to read this</h2>
<p>Intervals, e-values and verdicts come from one confidence set, which holds at all times at once: looking often, or
stopping when the answer is clear, costs nothing. An e-value above {limit:g} against &ldquo;no difference&rdquo; is a
verdict at level {alpha:g}; &ldquo;not yet&rdquo; is not &ldquo;no difference&rdquo;. The answers rest on the order of
the rows not depending on their outcomes, and on the law named below; an alarm, shown first if it rings, says that the
data refute that law.</p>
<h2>Definition</h2><dl>{definition}</dl>
</body></html>
"""


def page(study: Study) -> str:
    """The report as text."""
    answers = study.to_json()
    definition = answers["definition"]
    entries: dict[str, Any] = {
        "outcome": definition["outcome"], "family": wording.family_text(definition["family"]),
        "factors": "; ".join(f"{name}: {wording.factor_text(v)}" for name, v in definition["factors"].items()),
        "formula": definition["formula"], "control": ", ".join(map(str, definition["control"].values())),
        "goal": definition["goal"], "margin": definition["margin"], "key": definition["key"],
        "other columns": ", ".join(f"{role}: {column}" for role, column in definition["roles"].items()),
        "begun": f"{answers['created'][:16].replace('T', ' ')} UTC", "fingerprint": study.fingerprint,
    }  # fmt: skip
    listed = "".join(f"<dt>{k}</dt><dd>{escape(str(v))}</dd>" for k, v in entries.items() if v not in (None, ""))
    return _PAGE.format(
        title=escape(study.name), when=f"{now()[:16].replace('T', ' ')} UTC",
        answers=wording.html(answers, titled=False),
        pictures="".join(_pictures(study)), limit=1 / definition["alpha"], alpha=definition["alpha"], definition=listed,
    )  # fmt: skip


def _pictures(study: Study) -> list[str]:
    import matplotlib
    from matplotlib.figure import Figure

    from likeset.plots.theme import LIGHT, settings
    from likeset.study.pictures import height_of_bars

    found = []
    with matplotlib.rc_context({**settings(LIGHT), "svg.fonttype": "none"}):
        for over_time in (True, False):
            height = 3.8 if over_time else height_of_bars(len(study.rows()))
            figure = Figure(figsize=(7.5, height), layout="constrained")
            try:
                study.plot(over_time=over_time, axes=figure.add_subplot()).set_title("")
            except LikesetError:  # an empty study, or a refuted model: the words above say it
                continue
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None})
            svg = stream.getvalue()
            found.append(f"<figure>{svg[svg.index('<svg') :]}</figure>")
    return found
