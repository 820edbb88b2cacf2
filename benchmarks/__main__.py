"""Command line: ``python -m benchmarks [--only support growth ...] [--quick] [--compare] [--keep] [--out FILE]``.

``python -m benchmarks --against PATH`` plays rounds of UCB side by side with another work tree.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

import likeset
from benchmarks import (
    aggregation,
    alarm,
    bandits,
    baseline,
    bulk,
    choosing,
    coefficients,
    companion,
    contexts,
    contrasts,
    deciding,
    families,
    formulas,
    growth,
    laboratory,
    linear,
    page,
    peers,
    product,
    rkhs,
    rounds,
    ruling_out,
    safety,
    shares,
    start,
    stops,
    study,
    support,
    unknown,
    updates,
    variants,
    voices,
    widths,
    windows,
)

BENCHMARKS = {
    "support": support.run,
    "growth": growth.run,
    "start": start.run,
    "bulk": bulk.run,
    "updates": updates.run,
    "rkhs": rkhs.run,
    "bandits": bandits.run,
    "windows": windows.run,
    "families": families.run,
}
STUDIES = {
    "variants": variants.run,
    "product": product.run,
    "companion": companion.run,
    "linear": linear.run,
    "widths": widths.run,
    "stops": stops.run,
    "voices": voices.run,
    "choosing": choosing.run,
    "study": study.run,
    "page": page.run,
    "deciding": deciding.run,
    "peers": peers.run,
    "ruling": ruling_out.run,
    "safety": safety.run,
    "laboratory": laboratory.run,
    "contexts": contexts.run,
    "contrasts": contrasts.run,
    "several": contrasts.run_several,
    "shares": shares.run,
    "coefficients": coefficients.run,
    "announced": coefficients.run_announced,
    "counts": coefficients.run_counts,
    "formulas": formulas.run,
    "unknown": unknown.run,
    "alarm": alarm.run,
    "aggregation": aggregation.run,
}  # what else was tried: only when asked for


def main() -> None:
    """Run the chosen benchmarks, show each table as it is ready, write all numbers at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Benchmarks of the likeset engine.")
    parser.add_argument("--only", nargs="+", choices=[*BENCHMARKS, *STUDIES], help="default: all but the studies")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats")
    parser.add_argument("--cells", nargs="+", metavar="WORD", help="widths: only cells whose name has one of these")
    parser.add_argument("--out", type=Path, default=Path("out/bench/engine.json"), help="where the JSON goes")
    parser.add_argument("--markdown", type=Path, help="also write the tables as Markdown, as in docs/benchmarks.md")
    parser.add_argument(
        "--compare", action="store_true", help="run the quick benchmarks of the engine and compare with the baseline"
    )
    parser.add_argument("--keep", action="store_true", help=f"make this run the baseline, {baseline.BASELINE.name}")
    parser.add_argument(
        "--against", type=Path, metavar="PATH", help="only rounds of UCB, side by side with the work tree at PATH"
    )
    options = parser.parse_args()
    options.quick |= options.compare
    options.only = options.only or (list(baseline.COMPARED) if options.compare else list(BENCHMARKS))
    chosen = {name: (BENCHMARKS | STUDIES)[name] for name in options.only}
    if options.cells and "widths" not in chosen:
        parser.error("--cells chooses among the cells of --only widths")
    if options.cells:
        chosen["widths"] = partial(widths.run, words=options.cells)
    if options.against:
        chosen = {"rounds": partial(rounds.run, other=options.against)}

    console = Console() if sys.stdout.isatty() else Console(width=120)
    results, tables = {}, []
    for name, benchmark in chosen.items():
        with Progress(console=console, transient=True) as progress:
            report = benchmark(progress, options.quick)
        report.show(console)
        results[name] = report.records
        tables.append(report.markdown())

    machine = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "processor": platform.processor() or platform.machine(),
    }
    document = {
        "version": getattr(likeset, "__version__", None),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "machine": machine,
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    console.print(f"numbers written to {options.out}")
    if options.compare:
        baseline.compare(results).show(console)
    if options.keep:
        baseline.keep(document)
        console.print(f"kept in {baseline.BASELINE}")
    if options.markdown:
        called = " ".join(["python -m benchmarks", *(["--quick"] if options.quick else [])])
        versions = f"likeset {document['version']}, Python {machine['python']}, NumPy {machine['numpy']}"
        intro = (
            f"# Benchmarks\n\nOne run of `{called} --markdown docs/benchmarks.md` ({versions}, two shared cores). "
            "Times are noisy, by a factor of two on a busy machine; ratios are taken within one run.\n\n"
        )
        options.markdown.write_text(intro + "\n".join(tables))


if __name__ == "__main__":
    main()
