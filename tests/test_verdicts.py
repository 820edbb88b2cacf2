"""Verdicts that follow the rows, and the report: pictures, glossary, what a quick run may say."""

import dataclasses
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from likeset.paper.experiments import claims, evidence, judging, regret_answers, report, shape_answers
from likeset.paper.experiments.cells import Cell
from likeset.paper.experiments.figures import Scale, figures
from likeset.paper.experiments.methods import LIKELIHOOD_RATIO, PAPER, is_certifying
from likeset.paper.experiments.shape_answers import conic_misfit
from likeset.paper.experiments.tables import Table, gather

# -- claims ----------------------------------------------------------------------------------------------------------


def bandit_table(regret: dict[str, float], problem: str = "gaussian", repeats: int = 10, missed: int = 0) -> Table:
    """Synthetic final regrets, spread over repeats alike for every method."""
    spread = np.linspace(0.95, 1.05, repeats)
    finished = []
    for method, value in regret.items():
        for repeat in range(repeats):
            rows = {
                "provable": [method != "heuristic"] * 2,
                "t": [1, 2],
                "regret": [0.1, value * spread[repeat]],
                "covered": [True, repeat >= missed],
                "empty": [False, False],
            }
            finished.append((Cell("fig2", problem, method, repeat), rows))
    return gather(finished)


BASE = {"default": 10.0, "lr-mixture": 12.0, "lr-plug-in": 40.0, "lr-bound": 30.0, "AY 2011": 50.0, "heuristic": 28.0}
WEIGHTING = "In bandit games, weighting by the bias improves on w = 1."
STAYS = "With a B that contains it, the truth stays in the provable sets at all rounds."


def verdicts(table: Table, figure: str = "fig2", scale: Scale = Scale()) -> dict[str, str]:  # noqa: B008
    return {finding.statement: finding.verdict for finding in claims.judge({figure: table}, scale)}


def stacked(*tables: Table) -> Table:
    return Table({name: np.concatenate([table[name] for table in tables]) for name in tables[0].columns})


def test_verdicts_follow_the_rows():
    best = "The weighted ratio has the least regret of the provable sets that the paper compares."
    par = "For additive noise the weighted ratio is on par with the heuristic radius (within 25 %)."
    ours = "likeset's default has the least regret of all provable sets here."
    table = verdicts(bandit_table(BASE))
    assert [table[c] for c in (WEIGHTING, best, par, ours)] == ["holds"] * 4
    table = verdicts(bandit_table(BASE | {"lr-bound": 60.0, "default": 45.0}))
    assert [table[c] for c in (WEIGHTING, best, par, ours)] == ["does not hold"] * 4
    table = verdicts(bandit_table(BASE | {"lr-bound": 60.0, "lr-projection": 30.0}))
    assert table[WEIGHTING] == "holds"  # the best reading of the bias counts


def test_a_limit_of_a_quarter_is_not_a_limit_of_one():
    """Intervals that contain 1 decide a claim of "within 25 %", and intervals that contain 1.25 do not."""
    par = "For additive noise the weighted ratio is on par with the heuristic radius (within 25 %)."
    both_ways = "NR 2021 does about as well as the weighted ratio for Gaussian noise (within 25 %)."
    around_one = evidence.Ratio(1.0, 1.0, 0.9, 1.1)
    assert around_one.below(1.0) == evidence.UNCLEAR and around_one.below(1.25) == evidence.YES
    around_limit = evidence.Ratio(1.25, 1.0, 1.1, 1.4)
    assert around_limit.below(1.25) == evidence.UNCLEAR and around_limit.within(1.25) == evidence.UNCLEAR
    assert evidence.Ratio(0.5, 1.0, 0.4, 0.6).within(1.25) == evidence.NO
    assert evidence.Ratio(0.5, 1.0, 0.4, 0.6).below(1.25) == evidence.YES
    assert verdicts(bandit_table(BASE | {"lr-bound": 30.0, "heuristic": 30.0}))[par] == "holds"
    assert verdicts(bandit_table(BASE | {"lr-bound": 30.0, "NR 2021": 31.0}))[both_ways] == "holds"
    assert verdicts(bandit_table(BASE | {"lr-bound": 30.0, "NR 2021": 60.0}))[both_ways] == "does not hold"


def test_panels_that_disagree_depend_and_undecided_ones_do_not():
    good, bad = bandit_table(BASE), bandit_table(BASE | {"lr-bound": 60.0}, problem="laplace")
    worse = bandit_table(BASE | {"lr-bound": 60.0}, problem="survival")
    unclear = bandit_table(BASE | {"lr-bound": 40.0}, problem="poisson")
    assert verdicts(stacked(good, bad))[WEIGHTING] == "depends: holds in Gaussian; does not in Laplace"
    assert (
        verdicts(stacked(bad, worse, unclear))[WEIGHTING] == "does not hold in Laplace, survival; undecided in counts"
    )
    assert verdicts(stacked(good, unclear))[WEIGHTING] == "holds in Gaussian; undecided in counts"
    assert verdicts(unclear)[WEIGHTING] == "undecided"


def test_few_repeats_decide_nothing():
    """However far apart: four pairs on one side happen once in eight by chance."""
    for repeats in (1, 3, 4):
        finding = next(
            f for f in claims.judge({"fig2": bandit_table(BASE, repeats=repeats)}, Scale()) if f.statement == WEIGHTING
        )
        assert finding.verdict == "undecided" and finding.kind == "open"
        assert f"{repeats} repeat{'s' * (repeats > 1)}, too few to decide" in finding.measured[0]
    assert verdicts(bandit_table(BASE, repeats=5))[WEIGHTING] == "holds"
    values = np.linspace(70, 130, 10)
    assert evidence.compare(numbered(values), numbered(values[::-1])).below(1.0) == evidence.UNCLEAR
    growing = {f"linear-{sigma:g}": 1.0 / sigma**2 for sigma in (0.3, 0.15, 0.1, 0.05, 0.015)}
    for weight in ((0.5, 0.95), (0.5, 0.5)):
        said = verdicts(weights_table(growing, 0.8, weight, repeats=4), "weights")
        assert said["The weights approach one (0.9 or more in the last tenth)."] == "undecided"


def numbered(values: np.ndarray) -> dict[int, float]:
    return dict(enumerate(values.tolist()))


def test_pairs_are_made_by_repeat_and_a_missing_repeat_is_left_out_on_both_sides():
    """A cell that failed must neither shift the pairs nor stop the verdicts."""
    first, second = numbered(np.linspace(1.0, 9.0, 9)), numbered(np.linspace(2.0, 18.0, 9))
    whole = evidence.compare(first, second)
    assert whole.low == whole.high == 0.5 and whole.repeats == 9
    for a, b in ((first, {r: v for r, v in second.items() if r != 4}), ({r: first[r] for r in range(1, 9)}, second)):
        ratio = evidence.compare(a, b)
        assert ratio.low == ratio.high == 0.5 and ratio.repeats == 8
    nothing = evidence.compare({0: 1.0}, {1: 1.0})
    assert nothing.below(1.0) == nothing.within(2.0) == evidence.UNCLEAR and "nan" not in str(nothing)
    table = bandit_table(BASE)
    for method in BASE:
        said = verdicts(table.at((table["method"] != method) | (table["repeat"] != 3)))
        assert said[WEIGHTING] == "holds"


def test_the_rule_for_few_repeats_errs_as_rarely_as_it_says():
    """Two methods that are alike: a comparison of five or more repeats says yes or no in about 10 % of the cases."""
    rng = np.random.default_rng(1)
    for repeats, most in ((4, 0), (5, 60), (10, 60)):
        decided = 0
        for _ in range(300):
            first, second = rng.lognormal(sigma=0.3, size=(2, repeats))
            decided += evidence.compare(numbered(first), numbered(second)).below(1.0) != evidence.UNCLEAR
        assert decided <= most


def test_a_quick_run_points_nowhere_without_saying_so():
    """Comparisons stay open in a quick run, whatever the rows; the full run of the same rows decides."""
    tables = [bandit_table(BASE), bandit_table(BASE | {"lr-bound": 60.0, "default": 45.0})]
    tables.append(stacked(bandit_table(BASE), bandit_table(BASE | {"lr-bound": 60.0}, problem="laplace")))
    for table in tables:
        quick, full = (claims.judge({"fig2": table}, Scale(quick=quick)) for quick in (True, False))
        for claim, a, b in zip((c for c in claims.CLAIMS if c.figure == "fig2"), quick, full, strict=True):
            if claim.final_when_quick == judging.COMPARISON and a.measured:
                assert a.kind == "open" and a.verdict.startswith("undecided")
                if b.verdict != "undecided":
                    assert a.verdict == f"undecided (quick run); so far: {b.verdict}"
            elif claim.final_when_quick == judging.FACT:
                assert a.verdict == b.verdict
    # With misses beyond chance a quick run may refute coverage, but it never confirms it.
    assert verdicts(bandit_table(BASE, repeats=200), scale=Scale(quick=True))[STAYS].startswith("not refuted")
    assert verdicts(bandit_table(BASE, repeats=20, missed=15), scale=Scale(quick=True))[STAYS] == "does not hold"


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: f"{claim.figure}: {claim.statement}")
def test_no_quick_run_contradicts_a_full_one(claim):
    """By construction, for every claim and whatever its panels answer: a quick run says yes or no only to what more
    rounds and repeats cannot turn. Facts do not depend on them, and misses beyond chance stay misses."""
    kinds = (evidence.YES, evidence.NO, evidence.UNCLEAR, evidence.NOT_REFUTED)
    for held in itertools.product(kinds, repeat=3):
        answers = [evidence.Answer(f"panel {i}", kind, "") for i, kind in enumerate(held)]
        asked = dataclasses.replace(claim, answer=lambda table, answers=answers: answers)
        quick, full = (judging.judged([asked], {claim.figure: ANY}, Scale(quick=q))[0] for q in (True, False))
        if claim.final_when_quick == judging.FACT:
            assert (quick.verdict, quick.kind) == (full.verdict, full.kind)
            continue
        if quick.kind != "open":
            assert quick.kind == {judging.COVERAGE: "no", judging.FAILURE: "yes"}[claim.final_when_quick]
            assert {"no": evidence.NO, "yes": evidence.YES}[quick.kind] in held
        elif full.kind != "open":
            assert quick.verdict.startswith(("undecided", "not refuted"))
        if claim.final_when_quick == judging.COMPARISON and evidence.NOT_REFUTED not in held:
            assert quick.verdict.startswith("undecided")


ANY = Table({"problem": ["any"]})


def test_what_a_quick_run_calls_a_fact_is_the_same_cell_in_a_full_run():
    facts = {claim.answer for claim in claims.CLAIMS if claim.final_when_quick == judging.FACT}
    assert facts == {shape_answers.ellipses, regret_answers.stated_bound_contains}  # the latter looks at no rows
    plans = (figures()["fig1"].plan(Scale(quick=quick)) for quick in (True, False))
    quick, full = ({cell.digest for cell in plan if cell.problem != "band"} for plan in plans)
    assert quick == full and len(full) == 2


def test_coverage_holds_only_where_a_bad_set_would_have_been_noticed():
    assert verdicts(bandit_table(BASE, repeats=20, missed=15))[STAYS] == "does not hold"
    assert verdicts(bandit_table(BASE, repeats=2))[STAYS] == "undecided"
    assert verdicts(bandit_table(BASE, repeats=12, missed=1))[STAYS] == "not refuted"
    assert verdicts(bandit_table(BASE, repeats=200, missed=20))[STAYS] == "holds"
    finding = next(f for f in claims.judge({"fig2": bandit_table(BASE, repeats=12)}, Scale()) if f.statement == STAYS)
    assert "no misses in 12 runs" in finding.measured[0] and "would notice" in finding.measured[0]


@pytest.mark.parametrize("runs", [10, 12, 50, 200])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_the_power_said_is_the_power_had(runs, alpha):
    rng = np.random.default_rng(runs)
    rate = evidence.noticed(runs, alpha)
    found = np.mean(rng.binomial(runs, rate, size=20_000) > evidence.most_misses(runs, alpha))
    assert abs(found - evidence.POWER) < 0.015
    false = np.mean(rng.binomial(runs, alpha, size=20_000) > evidence.most_misses(runs, alpha))
    assert false <= 3e-4
    confirmed = evidence.misses_fit(0, runs, alpha) == evidence.YES
    assert confirmed == (rate <= alpha + evidence.NOTICED)


def test_a_test_without_power_is_undecided():
    """Ten misses in ten runs at alpha = 0.5 happen once in a thousand: nothing can be refuted."""
    assert evidence.misses_fit(10, 10, 0.5) == evidence.UNCLEAR
    assert "no number of misses" in evidence.power_in_words(10, 0.5)
    assert evidence.jointly([]) == evidence.jointly([evidence.UNCLEAR]) == evidence.UNCLEAR
    assert evidence.jointly([evidence.YES, evidence.UNCLEAR]) == evidence.NOT_REFUTED
    assert evidence.jointly([evidence.YES, evidence.NOT_REFUTED, evidence.NO]) == evidence.NO


def weights_table(radius: dict[str, float], width: float, weight: tuple[float, float], repeats: int = 10) -> Table:
    """Synthetic rows of the study of weights: R_t by problem for w = 1 and for the weights of Theorem 2."""
    spread = np.linspace(0.95, 1.05, repeats)
    finished = []
    for problem, value in radius.items():
        for method, size, wide in (("lr-plug-in", value, 1.0), ("lr-bound", 5.0, width), ("default", 1.0, 0.9 * width)):
            for i in range(repeats):
                rows = {
                    "provable": [True] * 2,
                    "t": [30, 1000],
                    "radius": [1.0, size * spread[i]],
                    "width": [2.0 * wide * spread[i], wide * spread[i]],
                    "weight": list(weight),
                    "covered": [True, True],
                }
                finished.append((Cell("weights", problem, method, i), rows))
    return gather(finished)


def test_verdicts_on_weights_follow_the_rows():
    blows = "Without weights R_t blows up as the noise falls (more than tenfold from sigma 0.3 to 0.015)."
    steady = "With the weights of Theorem 2 R_t does not depend on the noise (within a factor of two)."
    one = "The weights approach one (0.9 or more in the last tenth)."
    narrow = "For inference in linear models with Gaussian noise, weighting makes intervals narrower than w = 1."
    growing = {f"linear-{sigma:g}": 1.0 / sigma**2 for sigma in (0.3, 0.15, 0.1, 0.05, 0.015)}
    table = verdicts(weights_table(growing, 0.8, (0.5, 0.95)), "weights")
    assert [table[c] for c in (blows, steady, one, narrow)] == ["holds"] * 4
    flat = verdicts(weights_table(dict.fromkeys(growing, 20.0), 1.2, (0.5, 0.5)), "weights")
    assert [flat[c] for c in (blows, one, narrow)] == ["does not hold"] * 3
    rising = verdicts(weights_table(growing, 1.0, (0.4, 0.6)), "weights")
    assert rising[one] == rising[narrow] == "undecided"
    negative = verdicts(weights_table(dict.fromkeys(growing, -1.0), 0.8, (0.5, 0.95)), "weights")
    assert negative[blows] == "undecided"  # a ratio of numbers around zero says nothing
    swapped = stacked(weights_table(growing, 0.8, (0.5, 0.95)))
    names = np.where(swapped["method"] == "lr-plug-in", "lr-bound", swapped["method"])
    names = np.where(swapped["method"] == "lr-bound", "lr-plug-in", names)
    assert verdicts(Table({**swapped.columns, "method": names}), "weights")[steady] == "does not hold"


def test_the_radius_of_the_study_is_the_online_regret():
    from likeset import theory
    from likeset.paper.experiments import weights_study

    cell = Cell("weights", "linear-0.1", "lr-bound", 0, {"alpha": 0.1, "last": 30, "seed": 0})
    sample = weights_study._sample(cell)
    family = weights_study.MODELS["linear-0.1"].family
    sequence = LIKELIHOOD_RATIO["lr-bound"].build(family, sample.space, 0.1)
    sequence.update(sample.x, sample.y)
    expected = theory.online_regret(family, sequence.ledger, sample.truth)[[9, 29]]
    np.testing.assert_allclose(weights_study.run(cell)["radius"], expected, rtol=1e-9, atol=1e-9)


def calibration_table(critical: dict[str, np.ndarray]) -> Table:
    finished = []
    for method, values in critical.items():
        rows = {
            "provable": [method != "heuristic"] * len(values),
            "run": list(range(len(values))),
            "alpha_final": values.tolist(),
            "alpha_anytime": values.tolist(),
        }
        finished.append((Cell("fig3", "bandit-zero-0.1", method, 0), rows))
    return gather(finished)


def test_calibration_verdicts_follow_the_rows():
    rng = np.random.default_rng(0)
    exact, timid, broken = rng.uniform(size=200), np.ones(200), rng.uniform(size=200) ** 4
    covers = "All provable sets cover at all rounds at once, at every alpha."
    fails = "Heuristic sets fail to cover."
    better = "Ratio sets are substantially better calibrated than other provable sets."
    table = verdicts(calibration_table({"lr-plug-in": exact, "AY 2011": timid, "heuristic": broken}), "fig3")
    assert [table[c] for c in (covers, fails, better)] == ["holds"] * 3
    table = verdicts(calibration_table({"lr-plug-in": broken, "AY 2011": exact, "heuristic": timid}), "fig3")
    assert [table[c] for c in (covers, fails)] == ["does not hold"] * 2
    table = verdicts(calibration_table({"lr-plug-in": timid, "AY 2011": exact}), "fig3")
    assert table[better] == "does not hold"


@pytest.mark.parametrize(("runs", "said"), [(1, "undecided"), (19, "undecided"), (200, "holds")])
def test_panels_of_few_runs_do_not_differ(runs, said):
    """One run that misses against one that does not is a difference of 100 points, and nothing."""
    missed, kept = (calibration_table({"lr-plug-in": np.full(runs, level)}) for level in (0.1, 0.9))
    names = [np.full(len(missed), problem) for problem in ("iid-random-0.1", "iid-zero-0.1")]
    table = stacked(*(Table({**t.columns, "problem": n}) for t, n in zip((missed, kept), names, strict=True)))
    assert verdicts(table, "fig3")["Calibration depends on the true parameter."] == said


def test_every_claim_names_a_command_that_exists():
    findings = claims.judge({"fig2": bandit_table(BASE)}, Scale(quick=True, repeats=10, seed=3))
    assert findings
    for finding in findings:
        assert finding.command == "likeset reproduce fig2 --quick --repeats 10 --seed 3"


def test_conic_misfit_knows_ellipses():
    angles = np.linspace(0, 2 * np.pi, 200)
    x, y = 2 * np.cos(angles), np.sin(angles) + 0.5 * np.cos(angles)
    assert conic_misfit(x, y) < 1e-10
    assert conic_misfit(np.sign(x) * np.abs(x) ** 0.3, np.sign(y) * np.abs(y) ** 0.3) > 0.05


def written_report(tmp_path: Path, tables: dict[str, Table], scale: Scale = Scale()) -> str:  # noqa: B008
    """A report on synthetic rows, with their pictures."""
    wanted = [figures()[name] for name in tables]
    pictures = {f.name: f.draw(tables[f.name], tmp_path) for f in wanted}
    findings = claims.judge(tables, scale)
    results = report.Results(wanted, tables, pictures, findings, scale, "likeset reproduce", 1.0)
    report.write(tmp_path / "report.html", results)
    return (tmp_path / "report.html").read_text()


def without_pictures(page: str) -> str:
    """The text: the letters that encode a picture may spell anything."""
    return re.sub('src="data:[^"]*"', "", page)


def test_report_escapes_and_takes_more_sections(tmp_path, monkeypatch):
    table = bandit_table(BASE)
    findings = [judging.Finding("fig2", "a < b & c", ("1 < 2",), "holds", "yes", "likeset reproduce fig2")]
    results = report.Results([figures()["fig2"]], {"fig2": table}, {}, findings, Scale(), "likeset reproduce", 1.0)
    extra = lambda results: report.Section("One more", "<p>something</p>")  # noqa: E731
    monkeypatch.setattr(report, "SECTIONS", (*report.SECTIONS, extra))
    report.write(tmp_path / "report.html", results)
    page = (tmp_path / "report.html").read_text()
    assert "a &lt; b &amp; c" in page and "<h2>One more</h2><p>something</p>" in page


def test_report_begins_with_a_summary_and_its_contents_lead_somewhere(tmp_path):
    growing = {f"{kind}-{s:g}": 1.0 / s**2 for kind in ("function", "linear") for s in (0.3, 0.15, 0.1, 0.05, 0.015)}
    studied = weights_table(growing, 0.8, (0.5, 0.95))
    page = written_report(tmp_path, {"fig2": stacked(*(bandit_table(BASE, p) for p in FIG2)), "weights": studied})
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings[:2] == ["In short", "Contents"] and headings[-3:] == ["Claims", "Glossary", "How this was made"]
    targets = re.findall('href="#(.*?)"', page)
    assert all(f'<section id="{t}">' in page for t in targets)
    contents = page[page.index("<nav>") : page.index("</nav>")]
    assert len(set(re.findall('href="#(.*?)"', contents))) == len(headings) - 2
    summary = page[: page.index("<nav>")]
    assert WEIGHTING in summary and summary.count("<img") == 2
    assert page.index("Claims of the paper") < page.index("Claims of ours")
    for key in ("lr-bound", "lr-plug-in", "linear-0.05", "function-0.3", "nan"):
        assert key not in without_pictures(page)
    assert "LR weighted: bound (paper)" in page


FIG2 = ("gaussian", "laplace", "survival", "poisson")


def test_a_quick_report_says_so_before_any_verdict(tmp_path):
    tables = {"fig2": stacked(*(bandit_table(BASE, p) for p in FIG2))}
    page = written_report(tmp_path, tables, Scale(quick=True))
    assert "Quick run:" in page[: page.index("<nav>")] and "Undecided (quick run); so far: holds." in page


@pytest.mark.parametrize(("figure", "method"), [("fig2", "default"), ("fig2", "lr-bound"), ("weights", "lr-plug-in")])
def test_the_report_is_written_without_the_cells_that_failed(tmp_path, figure, method):
    """One repeat of a method is missing in every problem, and all of it in the first."""
    growing = {f"{kind}-{s:g}": 1.0 / s**2 for kind in ("function", "linear") for s in (0.3, 0.15, 0.1, 0.05, 0.015)}
    whole = {
        "fig2": stacked(*(bandit_table(BASE, p) for p in FIG2)),
        "weights": weights_table(growing, 0.8, (0.5, 0.9)),
    }
    table = whole[figure]
    failed = (table["repeat"] == 0) | (table["problem"] == table["problem"][0])
    page = written_report(tmp_path, {figure: table.at((table["method"] != method) | ~failed)})
    assert "Claims of the paper" in page and "nan" not in without_pictures(page) and page.count("<img") >= 1


def lab(colour: str) -> np.ndarray:
    """CIELAB: where distances are how different colours look (2 is hardly seen, black and white are 100 apart)."""
    level = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(level > 0.04045, ((level + 0.055) / 1.055) ** 2.4, level / 12.92)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_no_two_methods_of_a_picture_look_alike():
    from likeset.paper.experiments import fig2, fig4
    from likeset.paper.experiments.methods import newer, of_the_paper

    for figure, problems in ((fig2, fig2.PANELS), (fig4, fig4.BOUNDS)):
        played = {n: m for p in problems for n, m in (figure._methods(p) | figure._certifying(p)).items()}
        for belongs in (of_the_paper, lambda n: newer(n) and not is_certifying(n), is_certifying):
            methods = {n: m for n, m in played.items() if belongs(n)}
            assert len(methods) > 5
            for look in ("colour", "marker", "label"):
                assert len({getattr(m, look) for m in methods.values()}) == len(methods)
            assert "#444444" not in {m.colour for m in methods.values()}  # every method has a look of its own
            places = [lab(m.colour) for m in methods.values()]
            assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) > 15
            assert all("(paper)" in m.label for m in methods.values() if m.name.endswith(PAPER))


def test_legends_and_titles_fit_into_their_pictures(tmp_path, monkeypatch):
    from likeset.paper.experiments import drawing, fig2, fig3

    seen = []

    def looked_at(figure, stem):
        figure.canvas.draw()
        for legend in figure.legends:
            box = legend.get_window_extent()
            seen.append(stem.name)
            assert box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0, stem.name
        titles = [axis.title.get_window_extent() for axis in figure.axes]
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in titles), stem.name
        assert not any(a.overlaps(b) for a, b in itertools.combinations(titles, 2)), stem.name
        return stem

    for module in (drawing, fig3):
        monkeypatch.setattr(module, "save", looked_at)
    names = {name for p in fig2.PANELS for name in (*fig2._methods(p), *fig2._certifying(p))}
    games = [certificate_table(dict.fromkeys(names, 2), p, repeats=1) for p in fig2.PANELS]
    fig2.draw(stacked(*games), tmp_path)
    (panel, *_), rows = fig3.PANELS, np.full(3, 0.5)
    table = calibration_table(dict.fromkeys(fig3._methods(panel), rows))
    fig3.draw(Table({**table.columns, "problem": np.full(len(table), panel)}), tmp_path)
    assert len(seen) == 5


# -- certificates ----------------------------------------------------------------------------------------------------


def certificate_table(left: dict[str, float], problem: str = "gaussian", repeats: int = 5, lost: int = 0) -> Table:
    """Synthetic games for a certificate: arms left at the end, the best one ruled out in so many runs."""
    finished = []
    for method, count in left.items():
        for repeat in range(repeats):
            rows = {
                "provable": [True] * 2,
                "t": [1, 2],
                "regret": [0.1, 0.2],
                "covered": [True, True],
                "empty": [False, False],
                "left": [64, count],
                "best_left": [True, repeat >= lost],
            }
            finished.append((Cell("fig2", problem, method, repeat), rows))
    return gather(finished)


LEFT = {"elimination: default": 2, "elimination: lr-mixture": 4, "elimination: lr-bound": 8, "elimination: soonest": 1}


def test_verdicts_on_certificates_follow_the_rows():
    played = "Played for a certificate,"
    others = f"{played} likeset's default leaves fewer arms than the sets of the paper and its rivals."
    jointly = f"{played} likeset's default leaves fewer arms than the LR hyper-mixture."
    rule = f"{played} the rule soonest leaves fewer arms than the widest interval."
    stays = f"{played} the best arm is never ruled out."
    said = verdicts(certificate_table(LEFT))
    assert [said[c] for c in (others, jointly, rule)] == ["holds"] * 3 and said[stays] == "not refuted"
    said = verdicts(certificate_table(LEFT | {"elimination: default": 16}))
    assert [said[c] for c in (others, jointly)] == ["does not hold"] * 2
    assert verdicts(certificate_table(LEFT | {"elimination: soonest": 2}))[rule] == "undecided"
    assert verdicts(certificate_table(LEFT, repeats=20, lost=15))[stays] == "does not hold"
    assert verdicts(certificate_table(LEFT), scale=Scale(quick=True))[others].startswith("undecided (quick run)")


def test_games_for_a_certificate_are_kept_out_of_comparisons_of_regret():
    """Their regret is no method's: whoever explores pays."""
    plain, beside = bandit_table(BASE), certificate_table(LEFT, repeats=10)
    cells = [(Cell("fig2", "gaussian", m, r), rows) for m, r, rows in (*_rows_by_run(plain), *_rows_by_run(beside))]
    alone, both = verdicts(plain), verdicts(gather(cells))
    assert {claim: both[claim] for claim in alone if "certificate" not in claim} == {
        claim: verdict for claim, verdict in alone.items() if "certificate" not in claim
    }


def _rows_by_run(table: Table):
    for (method, repeat), part in table.groups("method", "repeat"):
        yield method, repeat, {n: part[n].tolist() for n in part.columns if n not in ("problem", "method", "repeat")}


def test_a_certified_arm_is_played_to_the_end():
    """Arms never come back, one is left when it is certified, and from then on that one is played."""
    import likeset as ls
    from likeset.paper.experiments.play import certificate_rows

    world = ls.environments.linear(dim=3, family=ls.Gaussian(0.1), n_arms=6, seed=1)
    for method in ("elimination: default", "elimination: soonest", "elimination: AY 2011, cut"):
        rows = certificate_rows(Cell("fig2", "gaussian", method, 0, {"alpha": 0.1, "rounds": 250}), world)
        assert {len(values) for values in rows.values()} == {250} and rows["t"] == list(range(1, 251))
        left = np.array(rows["left"])
        assert np.all(np.diff(left) <= 0) and left[0] <= 6 and left[-1] == 1 and all(rows["best_left"])
        stop = int(np.flatnonzero(left == 1)[0])
        assert stop < 249 and set(rows["arm"][stop + 1 :]) == {int(world.rewards.argmax())}
        assert rows["regret"][stop] == rows["regret"][-1]


# -- type II errors --------------------------------------------------------------------------------------------------


def power_rows(kept, delta, runs=100):
    """Rows of the study of type II errors in which a wrong parameter beyond Theorem 3's radius was kept so often."""
    return Table({
        "problem": ["power-gaussian"] * runs,
        "method": ["lr-plug-in"] * runs,
        "repeat": list(range(runs)),
        "t": [100] * runs,
        "distance": [1.0] * runs,
        "kept": [i < kept for i in range(runs)],
        "delta": [delta] * runs,
    })  # fmt: skip


@pytest.mark.parametrize(("kept", "said"), [(3, "yes"), (60, "no")])
def test_theorem_3_is_refuted_by_parameters_kept_too_often(kept, said):
    from likeset.paper.experiments.power_answers import keeps_theorem_3

    (answer,) = keeps_theorem_3(power_rows(kept, delta=0.05))
    assert answer.holds == said and f"{kept} of 100" in answer.detail
    assert list(keeps_theorem_3(power_rows(kept, delta=0.5))) == []  # not far enough for a promise


def test_nothing_against_nothing_is_no_difference():
    """All wrong parameters thrown out by both: zero is not less than zero."""
    from likeset.paper.experiments.power_answers import more_powerful

    nothing = dict.fromkeys(range(10), 0.0)
    ratio = evidence.compare(nothing, nothing)
    assert ratio.value == ratio.low == ratio.high == 1.0 and ratio.below(1.0) == evidence.UNCLEAR
    assert evidence.compare(nothing, dict.fromkeys(range(10), 0.5)).below(1.0) == evidence.YES
    assert evidence.compare(dict.fromkeys(range(10), 0.5), nothing).below(1.0) == evidence.NO
    for ours, theirs, said in ((0, 0, "unclear"), (100, 100, "unclear"), (0, 100, "yes"), (100, 0, "no")):
        rows = [power_rows(kept, 0.5).columns for kept in (ours, theirs)]
        rows[0]["method"] = np.full(100, "default")
        (answer,) = more_powerful(stacked(*map(Table, rows)))
        assert answer.holds == said, answer


def test_wrong_parameters_leave_the_set_and_the_truth_would_not():
    from likeset.paper.experiments import power
    from likeset.paper.experiments.figures import Scale

    cells = power.plan(Scale(quick=True, repeats=3))
    rows = [power.run(cell) for cell in cells if cell.problem == "power-gaussian"]
    last = [(d, k) for r in rows for t, d, k in zip(r["t"], r["distance"], r["kept"], strict=True) if t == 300]
    assert all(not kept for distance, kept in last if distance >= 0.8)
    assert any(kept for distance, kept in last if distance <= 0.1)
    assert all(0.0 <= delta <= 1.0 for r in rows for delta in r["delta"])
