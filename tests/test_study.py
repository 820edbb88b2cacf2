"""Study: definitions, frames of every kind, checks with row numbers, tables and verdicts that agree."""

import copy
import itertools
import math
import pickle
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likeset as ls
from likeset.study.frames import columns_of

VARIANTS = {"variant": ["A", "B", "C"]}


def signup(store=None, **options):
    settings = {"factors": VARIANTS, "outcome": {"converted": ls.Bernoulli()}, "control": "A", "key": "id"} | options
    return ls.Study("signup", store=store, **settings)


def visits(n, rates=(0.1, 0.12, 0.6), seed=0):
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 3, n)
    converted = (rng.random(n) < np.array(rates)[number]).astype(int)
    return pd.DataFrame({"variant": np.array(list("ABC"))[number], "converted": converted, "id": np.arange(n)})


# -- frames ------------------------------------------------------------------------------------------------------------


def test_every_kind_of_frame_gives_the_same_study(tmp_path):
    frame = visits(30)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    kinds = [
        frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy(), pa.Table.from_pandas(frame),
        frame.to_dict("records"), frame.to_dict("list"), {name: frame[name].to_numpy() for name in frame},
        tmp_path / "a.csv", str(tmp_path / "a.parquet"),
    ]  # fmt: skip
    answers = []
    for kind in kinds:
        study = signup()
        assert study.tell(kind) == ls.Told(30, 0, 30)
        answers.append(study.rows())
    assert all(answer == answers[0] for answer in answers)


CSV = {
    "byte-order mark": b"\xef\xbb\xbfdose,y\n0.5,1.5\n1,2\n",
    "semicolons and decimal commas": b"dose;y\n0,5;1,5\n1;2\n",
    "tabs": b"dose\ty\n0.5\t1.5\n1\t2\n",
    "empty lines, spaces, carriage returns": b"\r\n dose , y \r\n\r\n0.5 , 1.5\r\n\r\n1,2\r\n\r\n",
    "quotes": b'"dose","y","a, note"\n"0.5","1.5","x\ny"\n1,2,"a ""b"""\n',
    "utf-16": "dose,y\n0.5,1.5\n1,2\n".encode("utf-16"),
    "no last line end": b"dose,y\n0.5,1.5\n1,2",
    "what a spreadsheet says first": b"sep=;\ndose;y\n0,5;1,5\n1;2\n",
}


@pytest.mark.parametrize("kind", CSV)
def test_csv_as_it_is_found(kind, tmp_path):
    (tmp_path / "a.csv").write_bytes(CSV[kind])
    study = ls.Study("x", factors={"dose": float}, outcome={"y": ls.Gaussian(1.0)}, store=None)
    assert study.tell(tmp_path / "a.csv").total == 2
    plain = ls.Study("x", factors={"dose": float}, outcome={"y": ls.Gaussian(1.0)}, store=None)
    plain.tell([{"dose": 0.5, "y": 1.5}, {"dose": 1.0, "y": 2.0}])
    assert study.rows() == plain.rows()


BROKEN_CSV = {
    "a line of ten megabytes": (b"dose,y\n1," + b"9" * 10**7 + b"\n", "line 2.*longer than"),
    "ten megabytes without a line end": (b"d" * 10**7, "line 1.*longer than"),
    "a cell too many": (b"dose,y\n1,2\n1,2,3\n", r"row 2 \(line 3\).*3 cells under 2"),
    "a cell too few": (b"dose,y\n1,2\n\n1\n", r"row 2 \(line 4\).*1 cells under 2"),
    "a column twice": (b"dose,dose\n1,2\n", "'dose' twice"),
    "no text": (b"dose,y\n1,\xff\xfe\xfa\n", "line 2.*not UTF-8"),
    "nothing": (b"", "is empty"),
    "an open quote": (b'dose,y\n1,"2\n', "never closed"),
    "a word": (b"dose,y\n1,2\n1,two\n", r"y, row 2 \(line 3\) = 'two' is not a number"),
    "a gap": (b"dose,y\n1,2\n,2\n", r"dose, row 2 \(line 3\) = '' is missing"),
    "no such column": (b"dose,z\n1,2\n", "the column 'y' is missing: the columns are 'dose', 'z'"),
    "no such column, and no rows yet": (b"dose,z\n", "the column 'y' is missing: the columns are 'dose', 'z'"),
    "no such factor, and no rows yet": (b"doses,y\n", "the column 'dose' is missing: the columns are 'doses', 'y'"),
    "nan": (b"dose,y\n1,nan\n", "row 1 .*is not a number"),
    "thousands": (b"dose;y\n1;1.234,5\n", "row 1 .*is not a number"),
}


@pytest.mark.parametrize("kind", BROKEN_CSV)
def test_a_broken_csv_is_refused_with_its_line(kind, tmp_path):
    contents, message = BROKEN_CSV[kind]
    (tmp_path / "a.csv").write_bytes(contents)
    study = ls.Study("x", factors={"dose": float}, outcome={"y": ls.Gaussian(1.0)}, store=None)
    with pytest.raises(ls.InvalidArgumentError, match=message):
        study.tell(tmp_path / "a.csv")
    assert study.n == 0


# -- checks ------------------------------------------------------------------------------------------------------------

BAD_ROWS = {
    "unknown level": ({"variant": "Z", "converted": 1, "id": 9}, "variant, row 2 = 'Z' is no level"),
    "missing level": ({"variant": None, "converted": 1, "id": 9}, "variant, row 2 = None is missing"),
    "missing outcome": ({"variant": "A", "converted": math.nan, "id": 9}, "converted, row 2 = nan is missing"),
    "impossible outcome": ({"variant": "A", "converted": 2, "id": 9}, "converted, row 2 = 2 "),
    "text for a number": ({"variant": "A", "converted": "1", "id": 9}, "converted, row 2 = '1' is not a number"),
    "missing key": ({"variant": "A", "converted": 1, "id": None}, "id, row 2 = None is missing"),
    "unhashable level": ({"variant": ["A"], "converted": 1, "id": 9}, "variant, row 2"),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_bad_cell_is_named_and_nothing_is_recorded(kind):
    row, message = BAD_ROWS[kind]
    study = signup()
    with pytest.raises(ls.RowError, match=message) as caught:
        study.tell([{"variant": "A", "converted": 0, "id": 1}, row])
    assert caught.value.row == 2 and caught.value.remedy
    assert study.n == 0


def test_a_value_outside_its_interval_is_refused():
    study = ls.Study("x", factors={"dose": (0, 10)}, outcome={"y": ls.Gaussian(1.0)}, store=None)
    with pytest.raises(ls.RowError, match=r"dose, row 1 = 11 lies outside \[0, 10\]"):
        study.tell([{"dose": 11, "y": 1.0}])


DEFINITIONS = {
    "no factors": {"factors": None},
    "a level twice": {"factors": {"variant": ["A", "A"]}},
    "no levels": {"factors": {"variant": []}},
    "an unknown control": {"control": "Z"},
    "a confidence for an error level": {"alpha": 0.95},
    "an interval upside down": {"factors": {"dose": (3, 1)}, "control": None},
    "an unknown family": {"outcome": {"converted": "binary"}},
    "a class for a family": {"outcome": {"converted": ls.Bernoulli}},
    "one column for two things": {"key": "variant"},
    "an unknown goal": {"goal": "win"},
    "event without lifetimes": {"event": "seen"},
    "a formula that calls": {"formula": "~ np.load(variant)", "factors": None, "control": None},
    "a formula that imports": {"formula": "~ __import__('os')", "factors": None, "control": None},
    "a formula with y": {"formula": "y ~ x", "factors": None, "control": None},
    "levels that are not declared": {"formula": "~ C(ward)", "factors": None, "control": None},
    "a centre that would be learnt": {"formula": "~ center(age)", "factors": None, "control": None},
}


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_a_bad_definition_is_refused(kind):
    with pytest.raises(ls.InvalidArgumentError) as caught:
        signup(**DEFINITIONS[kind])
    assert caught.value.remedy


def test_generators_batches_of_arrow_and_arrays_of_levels():
    frame = visits(30)
    told = signup(factors={"variant": np.array(["A", "B", "C"])})
    told.tell(row for row in frame.to_dict("records"))
    for factors, rows in (
        (pd.Index(["A", "B", "C"]), pa.table(frame).to_batches()[0]),
        (pl.Series(["A", "B", "C"]), pa.table(frame).to_reader()),
    ):
        study = signup(factors={"variant": factors})
        study.tell(rows)
        assert study.rows() == told.rows()


def test_frames_that_nearly_fit_are_told_what_to_mend():
    twice = pd.DataFrame([["A", "B", 1, 1]], columns=["variant", "variant", "converted", "id"])
    text = [{"variant": "A", "converted": "1", "id": 1}]
    huge = [{"variant": "A", "converted": 10**400, "id": 1}]
    for rows, said in ((twice, "two columns of one name"), (text, "but text; make the column"), (huge, "is too large")):
        with pytest.raises(ls.InvalidArgumentError, match=said):
            signup().tell(rows)


# -- keys and order ----------------------------------------------------------------------------------------------------


def test_rows_that_come_again_are_counted_once_and_restated_ones_refused():
    study, frame = signup(), visits(50)
    assert study.tell(frame[:30]) == ls.Told(30, 0, 30)
    assert study.tell(frame) == ls.Told(20, 30, 50)
    assert study.tell(pd.concat([frame, frame])) == ls.Told(0, 100, 50)
    once = signup()
    once.tell(frame)
    assert study.rows() == once.rows()
    changed = frame.assign(converted=1 - frame["converted"])
    with pytest.raises(ls.RestatedRowError, match="restates the row recorded under the key '0'") as caught:
        study.tell(changed[:1])
    assert caught.value.recorded["converted"] != caught.value.value["converted"]
    assert caught.value.recorded["variant"] == frame["variant"][0]
    with pytest.raises(ls.RestatedRowError):
        study.tell([{"variant": "A", "converted": 0, "id": "n"}, {"variant": "A", "converted": 1, "id": "n"}])
    assert study.n == 50


@pytest.mark.parametrize("told", [[1, 2], [1.0, 2.0], ["1.0", "2"]], ids=str)
@pytest.mark.parametrize("again", [[1, 2], [1.0, 2.0], ["1", "2.0"]], ids=str)
def test_whole_numbers_are_one_key_however_a_frame_holds_them(told, again):
    study, rows = signup(), {"variant": ["A", "B"], "converted": [1, 0]}
    study.tell(rows | {"id": told})
    assert study.tell(rows | {"id": again}).repeated == 2
    with pytest.raises(ls.RestatedRowError):
        study.tell({"variant": ["A"], "converted": [0], "id": again[:1]})


@pytest.mark.parametrize(
    "ids",
    [[1234567890123456789.0, 1234567890123456790.0], np.array([16777216, 16777217], np.float32), [3.0, math.inf]],
    ids=str,
)
def test_keys_that_floats_do_not_tell_apart_are_refused(ids):
    """Of two rows the second would be taken for the first, and be lost."""
    study, rows = signup(), {"variant": ["A", "A"], "converted": [1, 1]}
    for told in (rows | {"id": ids}, pd.DataFrame(rows | {"id": ids})):
        with pytest.raises(ls.RowError, match="too large to be told from"):
            study.tell(told)
    assert study.n == 0
    assert study.tell(rows | {"id": [1234567890123456789, 1234567890123456790]}).recorded == 2
    assert study.tell(rows | {"id": [0.0, 2.0**53 - 1]}).recorded == 2
    assert study.tell(rows | {"id": [-0.0, 2**53 - 1]}).repeated == 2


def test_keys_that_earlier_releases_wrote_are_known(monkeypatch):
    study, rows = signup(), {"variant": ["A", "B"], "converted": [1, 0], "id": [1.0, 2.0]}
    with monkeypatch.context() as before:
        before.setattr("likeset.study.batch.key_text", str)
        study.tell(rows)
    assert study.tell(rows).repeated == 2 == study.tell(rows | {"id": [1, 2]}).repeated
    with pytest.raises(ls.RestatedRowError):
        study.tell(rows | {"converted": [1, 1]})


def test_the_same_rows_without_a_key_are_warned_about():
    study = signup(key=None)
    study.tell(visits(40))
    with pytest.warns(ls.RepeatedRowsWarning, match="count twice"):
        study.tell(visits(40))
    assert study.n == 80


@pytest.mark.parametrize("by", [["converted"], ["variant", "converted"]])
def test_rows_sorted_by_their_outcome_are_warned_about(by):
    with pytest.warns(ls.OrderWarning, match="sorted by 'converted'"):
        signup().tell(visits(200).sort_values(by))


def test_sorting_by_anything_else_is_no_reason_for_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        signup().tell(visits(200).sort_values("variant", kind="stable"))
        ls.Study("c", factors=VARIANTS, outcome=ls.Poisson(), store=None).tell(
            [{"variant": "A", "outcome": 0} for _ in range(100)]
        )


# -- answers -----------------------------------------------------------------------------------------------------------


def test_the_table_is_what_the_engine_says():
    study, frame = signup(), visits(300)
    study.tell(frame)
    sequence = ls.ConfidenceSequence(
        ls.Bernoulli(), study.set.space, voices=study._fresh().sequence.voices, alarm=False
    )
    sequence.update(np.eye(3)[["ABC".index(v) for v in frame["variant"]]], frame["converted"])
    low, high = sequence.set.interval(np.eye(3))
    table = study.table().set_index("level")
    assert (table["z_lower"] >= low).all() and (table["z_upper"] <= high).all()  # pairs know more of their two arms
    assert (table["z_upper"] - table["z_lower"] < 0.97 * (high - low)).any()
    np.testing.assert_allclose(table["upper"], 1 / (1 + np.exp(-table["z_upper"])), rtol=1e-14)
    between = sequence.set.contrast([0.0, 0.0, 1.0], [1.0, 0.0, 0.0], of="odds")  # of the announced pair
    np.testing.assert_array_equal([table.odds_lower["C"], table.odds_upper["C"]], np.ravel(tuple(between)))
    e_value = sequence.set.evidence([-1.0, 0.0, 1.0], equal=0.0).e_value[0]
    assert table.e_value["C"] == pytest.approx(e_value, rel=1e-12) and table.verdict["C"] == "better"
    counts = frame.groupby("variant")["converted"]
    np.testing.assert_array_equal(table["n"], counts.size())
    np.testing.assert_allclose(table["observed"], counts.mean())
    assert study.verdict() == {"B": "not yet", "C": "better"}
    assert study.predict([{"variant": "C"}])["lower"][0] == table.lower["C"]


@pytest.mark.parametrize("goal, word", [("maximise", "better"), ("minimise", "worse")])
def test_verdicts_follow_the_goal(goal, word):
    study = signup(goal=goal)
    study.tell(visits(300))
    assert study.verdict()["C"] == word


def test_a_longer_life_is_the_higher_outcome():
    """The mean of a lifetime falls in z: better must mean longer all the same."""
    rng = np.random.default_rng(1)
    study = ls.Study(
        "life", factors={"arm": ["old", "new"]}, outcome={"time": ls.Weibull(1.0)}, event="seen", control="old",
        store=None,
    )  # fmt: skip
    arm = rng.integers(0, 2, 400)
    time = rng.exponential(np.where(arm == 1, 4.0, 1.0))
    study.tell({"arm": np.array(["old", "new"])[arm].tolist(), "time": np.minimum(time, 6.0), "seen": time < 6.0})
    row = study.rows()[1]
    assert row["verdict"] == "better" and row["difference_lower"] > 0 and row["ratio_lower"] > 1


def test_equivalence_within_a_margin():
    study = ls.Study(
        "eq", factors={"arm": ["a", "b"]}, outcome={"y": ls.Gaussian(0.1)}, control="a", margin=0.2, store=None
    )
    rng = np.random.default_rng(2)
    study.tell({"arm": ["a", "b"] * 300, "y": rng.normal(1.0, 0.1, 600)})
    assert study.verdict() == {"b": "equivalent"}
    row = study.rows()[1]
    e = study.set.evidence([0.0, 1.0], minus=[1.0, 0.0], of="difference", above=0.2).e_value[0]
    assert row["margin_e_value"] <= e and row["margin_e_value"] > 20.0
    assert "e-value of the margin" in study.summary()


def test_interval_and_verdict_never_disagree():
    """After every few rows of a stream that ends decided; contrasts on all scales have the sign of the verdict."""
    study, frame = signup(key=None), visits(240, rates=(0.1, 0.4, 0.7), seed=3)
    seen = set()
    for start in range(0, 240, 20):
        study.tell(frame[start : start + 20])
        for row in study.rows()[1:]:
            decided = row["verdict"] in ("better", "worse")
            seen.add(decided)
            for of, neutral in (("difference", 0.0), ("ratio", 1.0), ("odds", 1.0)):
                assert (row[f"{of}_lower"] > neutral or row[f"{of}_upper"] < neutral) == decided
            if row["e_value"] is not None:
                assert (row["e_value"] > 20.0) == decided == (row["p_value"] < 0.05)
    assert seen == {True, False}


LAWS = {
    "bernoulli": lambda mean, rng: rng.random(len(mean)) < 1 / (1 + np.exp(-mean)),
    "poisson": lambda mean, rng: rng.poisson(np.exp(mean)),
    "gaussian(sigma=0.7)": lambda mean, rng: rng.normal(mean, 0.7),
    "gaussian": lambda mean, rng: rng.normal(mean, 0.7),
    "laplace(scale=0.5)": lambda mean, rng: rng.laplace(mean, 0.5),
    "weibull(shape=1.5)": lambda mean, rng: rng.weibull(1.5, len(mean)) * np.exp(-mean / 1.5),
    "geometric": lambda mean, rng: rng.poisson(np.exp(mean) * rng.exponential(size=len(mean))),
    "gamma(shape=2)": lambda mean, rng: np.exp(mean) * rng.gamma(2.0, 0.5, len(mean)),
}


@pytest.mark.parametrize("law", LAWS)
def test_answers_of_random_studies_never_disagree(law):
    """Random factors, effects, goals, margins and levels: verdict, intervals, e-value and p-value say one thing."""
    seen = set()
    for seed in range(1 if law == "gaussian" else 4):
        rng = np.random.default_rng([91, seed])
        levels = ["A", "B", "C"][: rng.integers(2, 4)]
        alpha, goal = rng.choice([0.05, 0.2]), rng.choice(["maximise", "minimise"])
        margin = rng.choice([None, 0.3])
        factors = {"arm": levels} | ({"dose": (0.0, 10.0)} if seed % 2 else {})
        study = ls.Study(
            "any", factors=factors, outcome={"y": law}, control="A", goal=str(goal), alpha=float(alpha), margin=margin,
            store=None,
        )  # fmt: skip
        effect, slope = rng.normal(0.0, 1.2, len(levels)), rng.normal(0.0, 0.3)
        for count in (3, 40, 160):
            arm, dose = rng.integers(0, len(levels), count), rng.uniform(0.0, 10.0, count)
            mean = effect[arm] + slope * (dose - 5.0) * (seed % 2)
            y = LAWS[law](mean, rng)
            study.tell({"arm": np.array(levels)[arm].tolist(), "dose": dose, "y": y})
            rows = study.rows()
            if not study.alarm()["rings"]:
                seen |= {agreed(row, float(alpha), str(goal), margin) for row in rows if row["verdict"] != "control"}
            else:
                assert all(row["verdict"] in (None, "control") and row["lower"] is None for row in rows)
    assert "not yet" in seen and seen & {"better", "worse"}


def agreed(row, alpha, goal, margin):
    """The verdict of a row, which everything in it has to say as well."""
    assert row["estimate"] is None or row["lower"] <= row["estimate"] <= row["upper"]
    ends = {"": (row["lower"], row["upper"], 0.0)} if row["kind"] == "coefficient" else {}
    for of, neutral in (("difference", 0.0), ("ratio", 1.0), ("odds", 1.0)):
        if row[f"{of}_lower"] is not None:
            ends[of] = (row[f"{of}_lower"], row[f"{of}_upper"], neutral)
    above, below = ({low > neutral for low, _, neutral in ends.values()}, {up < n for _, up, n in ends.values()})
    assert len(above) == len(below) == 1 and not above & below & {True}
    decided = True in above | below
    if row["e_value"] is not None:
        assert (row["e_value"] > 1 / alpha) == decided == (row["p_value"] < alpha)
    if row.get("margin_e_value") is not None:
        assert (row["margin_e_value"] > 1 / alpha) == (row["verdict"] == "equivalent")
    if row["verdict"] == "equivalent":
        assert -margin < row["difference_lower"] and row["difference_upper"] < margin
    elif row["kind"] == "level":
        higher = "better" if goal == "maximise" else "worse"
        lower = "worse" if goal == "maximise" else "better"
        assert row["verdict"] == ("not yet" if not decided else higher if True in above else lower)
    else:
        assert row["verdict"] == ("not yet" if not decided else "positive" if True in above else "negative")
    return row["verdict"]


def test_a_refuted_model_says_so_first():
    study = ls.Study("x", factors={"arm": ["a"]}, outcome={"y": ls.Gaussian(0.1)}, bound=1.0, store=None)
    study.tell({"arm": ["a"] * 30, "y": [50.0 - i % 2 for i in range(30)]})
    assert study.alarm()["rings"] and "refute" in study.alarm()["text"]
    assert study.rows()[0]["lower"] is None and study.rows()[0]["observed"] == 49.5
    assert study.to_json()["alarm"]["rings"]
    assert "All intervals hold" not in study.summary()


def test_verdicts_stand_beside_their_levels_in_html():
    """Tables are wider than a phone, and what is at the end of a line is not seen."""
    study = signup()
    study.tell(visits(60))
    headings = re.findall(r"<th [^>]*>([^<]*)</th>", study._repr_html_())
    assert headings[:2] == ["level", "verdict"] and any(
        line.endswith("verdict") for line in study.summary().splitlines()
    )
    assert re.findall(r"<li>([BC]) (?:is|against)", study._repr_html_()) == list(study.verdict())


def test_many_levels_are_drawn_and_told_by_what_is_decided():
    levels = [f"a long name of variant number {i:02d}" for i in range(20)]
    made = {"factors": {"variant": levels}, "outcome": {"orders": "poisson"}, "control": levels[0], "units": "per week"}
    study = ls.Study("many", **made, store=None)
    rows = np.tile(np.arange(20), 30)
    orders = np.random.default_rng(0).poisson(np.where(rows == 19, 30.0, 2.0))
    study.tell({"variant": [levels[i] for i in rows], "orders": orders})
    assert study.verdict()[levels[19]] == "better"
    over_time = study.plot()
    assert levels[19] in [t.get_text().replace("\n", " ") for t in over_time.get_legend().get_texts()]
    assert "5 of 19" in over_time.get_title("left")
    plt.close("all")
    now = study.plot(over_time=False)
    now.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in now.get_yticklabels()]
    assert len(boxes) == 19 and min(box.x0 for box in boxes) >= 0  # nothing is cut off,
    assert all(above.y0 > below.y1 for above, below in itertools.pairwise(boxes))  # and nothing covers anything
    plt.close("all")
    said = study.summary()
    assert f"{levels[19]} is better than {levels[0]}: orders is higher by" in said and "13 more in the table." in said


def test_a_definition_that_leaves_something_out_is_another_one(tmp_path):
    made = dict(factors={"t": (0.0, 1.0)}, outcome={"y": ls.Bernoulli()}, store=tmp_path / "s.db")
    ls.Study("x", **made, model="smooth")
    with pytest.raises(ls.StudyMismatchError, match="campaign"):
        ls.Study("x", **made)


def test_formulas_are_frozen():
    factors = {"ward": ["a", "b", "c"], "age": (20, 80)}
    study = ls.Study(
        "stay", formula="~ scale(age) + C(ward)", factors=factors, outcome={"days": ls.Poisson()}, store=None
    )
    study.tell([{"age": 70, "ward": "b", "days": 3}])
    study.tell([{"age": 30, "ward": "a", "days": 1}, {"age": 30, "ward": "c", "days": 1}])
    together = copy.deepcopy(study)
    np.testing.assert_array_equal(together.set._evidence.groups.covariates, study.set._evidence.groups.covariates)
    assert [row["level"] for row in study.rows()] == ["Intercept", "scale(age)", "C(ward)[T.b]", "C(ward)[T.c]"]
    x = study.definition.asked(ls.study.frames.columns_of([{"age": 50, "ward": "a"}]))
    assert dict(zip(study.definition.columns, x[0], strict=True))["scale(age)"] == pytest.approx(0.0)


def test_what_a_formula_learns_can_come_from_a_frame():
    like = pd.DataFrame({"age": [40.0, 50.0, 60.0], "ward": ["b", "a", "b"]})
    study = ls.Study("s", formula="~ center(age) + ward", outcome={"y": ls.Gaussian(1.0)}, like=like, store=None)
    study.tell([{"age": 70, "ward": "b", "y": 3.0}])
    row = study.set._evidence.groups.covariates[0]
    assert dict(zip(study.definition.columns, row, strict=True)) == {
        "Intercept": 1.0,
        "ward[T.b]": 1.0,
        "center(age)": 20.0,
    }
    with pytest.raises(ls.RowError, match="no level of 'ward'"):
        study.tell([{"age": 70, "ward": "c", "y": 3.0}])


def test_a_logarithm_of_nothing_is_refused_with_its_row():
    study = ls.Study("s", formula="~ np.log(dose)", outcome={"y": ls.Gaussian(1.0)}, store=None)
    with pytest.raises(ls.RowError, match=r"np.log\(dose\), row 2"):
        study.tell([{"dose": 1, "y": 1}, {"dose": 0, "y": 1}])


def test_copies_are_independent():
    study = signup()
    study.tell(visits(20))
    for other in (copy.deepcopy(study), pickle.loads(pickle.dumps(study))):
        assert other.rows() == study.rows()
        other.tell([{"variant": "A", "converted": 1, "id": "new"}])
        assert (other.n, study.n) == (21, 20)


# -- totals ------------------------------------------------------------------------------------------------------------


def test_daily_totals_are_rows():
    """A day of visitors in one row, beside the engine's own answer."""
    study = ls.Study(
        "days", factors={"variant": ["A", "B"]}, outcome={"bought": ls.Bernoulli()}, trials="visitors", control="A",
        store=None,
    )  # fmt: skip
    days = [("A", 980, 101), ("B", 1013, 183), ("A", 1104, 109), ("B", 1077, 201)]
    study.tell([{"variant": v, "visitors": n, "bought": k} for v, n, k in days])
    control, treated = study.rows()
    assert (control["n"], treated["n"]) == (2084, 2090)
    assert treated["observed"] == pytest.approx(384 / 2090)
    assert treated["lower"] < 384 / 2090 < treated["upper"] and treated["verdict"] == "better"
    pieces = study._fresh().sequence
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), study.set.space, voices=pieces.voices, alarm=pieces.alarm)
    sequence.update(np.eye(2)[[0, 1, 0, 1]], [d[2] for d in days], trials=[d[1] for d in days])
    between = sequence.set.contrast([0.0, 1.0], [1.0, 0.0])
    assert (treated["difference_lower"], treated["difference_upper"]) == (between.lower[0], between.upper[0])


def test_counts_with_exposure_are_rates():
    study = ls.Study("hours", factors={"m": ["x", "y"]}, outcome={"k": ls.Poisson()}, exposure="hours", store=None)
    study.tell(
        [{"m": "x", "k": 3, "hours": 24.0}, {"m": "y", "k": 50, "hours": 25.0}, {"m": "y", "k": 30, "hours": 15}]
    )
    assert [row["n"] for row in study.rows()] == [1, 2]
    assert [row["observed"] for row in study.rows()] == [0.125, 2.0]
    assert study.rows()[1]["lower"] < 2.0 < study.rows()[1]["upper"]


BAD_TOTALS = {
    "more successes than trials": ({"variant": "A", "visitors": 3, "bought": 4}, "bought, row 2 = 4 "),
    "no trials": ({"variant": "A", "visitors": 0, "bought": 0}, "visitors, row 2 = 0 is not positive"),
    "half a trial": ({"variant": "A", "visitors": 2.5, "bought": 1}, "visitors, row 2 = 2.5 is no whole number"),
    "missing": ({"variant": "A", "bought": 1}, "visitors, row 2 = None is missing"),
}


@pytest.mark.parametrize("kind", BAD_TOTALS)
def test_bad_totals_are_refused_with_their_row(kind):
    row, message = BAD_TOTALS[kind]
    study = ls.Study("d", factors={"variant": ["A"]}, outcome={"bought": "bernoulli"}, trials="visitors", store=None)
    with pytest.raises(ls.RowError, match=message):
        study.tell([{"variant": "A", "visitors": 3, "bought": 1}, row])
    assert study.n == 0


def test_sizes_that_mean_nothing_are_refused():
    with pytest.raises(ls.InvalidArgumentError, match="means nothing for Gaussian"):
        ls.Study("d", factors={"variant": ["A"]}, outcome={"y": ls.Gaussian()}, trials="visitors", store=None)


def test_interim_looks_at_lifetimes_never_count_time_twice():
    """(entry, exit, event) rows of two looks have the likelihood of the whole lives."""

    def study():
        return ls.Study(
            "life", factors={"arm": ["a", "b"]}, outcome={"exit": ls.Weibull(1.5)}, event="dead", entry="entry",
            control="a", store=None,
        )  # fmt: skip

    looks, whole = study(), study()
    looks.tell([{"arm": "a", "entry": 0, "exit": 0.8, "dead": 0}, {"arm": "b", "entry": 0, "exit": 0.5, "dead": 1}])
    looks.tell([{"arm": "a", "entry": 0.8, "exit": 1.3, "dead": 1}])
    whole.tell([{"arm": "a", "entry": 0, "exit": 1.3, "dead": 1}, {"arm": "b", "entry": 0, "exit": 0.5, "dead": 1}])
    thetas = np.array([[0.1, 0.2], [0.5, -0.3]])
    # Of all rows together: voices that wait hear them as they come.
    found = [s._evidence.contributions(thetas @ s._evidence.groups.covariates.T) for s in (looks.set, whole.set)]
    np.testing.assert_allclose(*(np.diff(parts.sum(axis=1)) for parts in found))
    with pytest.raises(ls.RowError, match=r"exit, row 1 = 0\.7 is not after its entry"):
        looks.tell([{"arm": "a", "entry": 0.8, "exit": 0.7, "dead": 1}])


# -- pictures and pages ------------------------------------------------------------------------------------------------


def test_earlier_looks_are_what_was_seen_then():
    study, frame = signup(key=None), visits(20)
    seen = {}
    for start in range(0, 20, 10):
        study.tell(frame[start : start + 10])
        seen[start + 10] = study.rows()
    found = dict(study._looks(100))
    assert all(found[n] == seen[n] for n in seen) and len(found) == 20


def test_plots_show_what_the_table_says():
    study = signup()
    study.tell(visits(120))
    rows = study.rows()
    over_time = study.plot()
    assert [t.get_text() for t in over_time.get_legend().get_texts()] == ["B", "C"]
    assert over_time.get_ylabel() == "difference from A in converted"
    plt.close("all")
    now = study.plot(over_time=False)
    assert [t.get_text() for t in now.get_yticklabels()] == ["B", "C"]
    ends = np.concatenate(
        [line.get_xdata() for line in now.lines] + [c.get_segments()[0][:, 0] for c in now.collections]
    )
    assert {rows[1]["difference_lower"], rows[1]["difference_upper"]} <= set(ends)
    plt.close("all")
    with pytest.raises(ls.InvalidArgumentError, match="nothing to draw"):
        signup().plot()


def test_a_report_is_one_file_with_everything_in_it(tmp_path):
    study = signup(units="per visit")
    study.tell(visits(60))
    study.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert text.count("<svg") == 2 and study.fingerprint in text and "variant" in text
    assert not re.search(r"(src|href)=\"(?!#)", text.replace("http://www.w3.org", ""))
    assert "<script" not in text
    hostile = ls.Study("<b>x</b>", factors={"<i>": ["<u>"]}, outcome={"<s>": "poisson"}, store=None)
    hostile.tell([{"<i>": "<u>", "<s>": 1}])
    hostile.report(tmp_path / "h.html")
    assert not re.search("<(b|i|u|s)>", (tmp_path / "h.html").read_text() + hostile._repr_html_())
    with pytest.raises(ls.InvalidArgumentError, match="cannot be written"):
        study.report(tmp_path / "no" / "r.html")


def test_an_alarm_comes_first_everywhere(tmp_path):
    study = ls.Study("x", factors={"arm": ["a"]}, outcome={"y": ls.Gaussian(0.1)}, bound=1.0, store=None)
    study.tell({"arm": ["a"] * 30, "y": [50.0 - i % 2 for i in range(30)]})
    assert study.summary().splitlines()[1].startswith("ALARM")
    study.report(tmp_path / "r.html")
    for text in (study._repr_html_(), (tmp_path / "r.html").read_text()):
        assert text.index("ALARM") < text.index("<table")


def test_intervals_that_are_not_of_the_outcome_say_so():
    outcome = {"t": ls.Weibull(ls.Unknown())}
    study = ls.Study("l", factors={"arm": ["a", "b"]}, outcome=outcome, control="a", store=None)
    study.tell({"arm": ["a", "b"] * 20, "t": np.random.default_rng(0).exponential(size=40)})
    text = study.summary()
    assert (
        "interval of z" in text
        and "The shape is not known" in text
        and "b against a is not decided yet: the ratio of hazards lies in" in text
    )
    known = ls.Study("l", factors={"arm": ["a", "b"]}, outcome={"t": ls.Weibull(1.0)}, control="a", store=None)
    assert "of z" not in known.summary()


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "weibull(shape=1.5)", "logweibull(shape=1.5)"])
def test_contrasts_of_a_table_are_those_of_the_set(family):
    """With several factors no pairs are announced: the set's own contrasts, as sharp as they are."""
    rng, n = np.random.default_rng(0), 150
    frame = {"v": rng.choice(["A", "B"], n), "w": rng.choice(["m", "f"], n), "y": rng.integers(0, 2, n) + 0.0}
    frame["y"] += 0.0 if family in ("bernoulli", "poisson") else rng.random(n) + 0.1
    factors = {"v": ["A", "B"], "w": ["m", "f"]}
    study = ls.Study("s", factors=factors, outcome={"y": family}, control="A", alarm=False, store=None)
    study.tell(frame)
    row, kinds = study.rows()[1], {"bernoulli": ("difference", "ratio", "odds"), "poisson": ("difference", "ratio")}
    told = [of for of in ("difference", "ratio", "odds") if row[f"{of}_lower"] is not None]
    # Logarithms of lifetimes have no sign: their ratio means nothing.
    assert tuple(told) == kinds.get(family, ("difference",) if "log" in family else ("difference", "ratio"))
    x, other = (rows[0] for rows in (study.definition.asked(columns_of([{"v": v, "w": "m"}])) for v in "BA"))
    for of in told:
        own = study.set.contrast(x, other, of)
        assert (row[f"{of}_lower"], row[f"{of}_upper"]) == (own.lower[0], own.upper[0])


@pytest.mark.parametrize("family", ["logweibull(shape=2)", "weibull(shape=2)", "gaussian", "poisson"])
def test_without_rows_no_mean_is_excluded(family):
    factors = {"v": [1, 2], "w": ["m", "f"]}
    row = ls.Study("s", factors=factors, outcome={"y": family}, control=1, store=None).rows()[1]
    least = -np.inf if family in ("gaussian", "logweibull(shape=2)") else 0.0
    assert (row["lower"], row["upper"]) == (least, np.inf)
    assert (row["difference_lower"], row["difference_upper"]) == (-np.inf, np.inf)


def test_odds_of_several_trials_are_those_of_one():
    study = ls.Study("s", factors={"v": [1, 2]}, outcome={"y": ls.Binomial(3)}, control=1, store=None)
    study.tell({"v": [1, 2] * 40, "y": [1, 2] * 40})
    row = study.rows()[1]
    assert row["odds"] == pytest.approx(4.0, rel=0.01) and row["odds_lower"] < row["odds"] < row["odds_upper"]


def test_where_the_shape_is_unknown_levels_are_compared_by_their_hazards():
    """Hazards are p t^(p - 1) exp(z): their ratio is exp of the difference in z, and 2^-1.5 here, whatever p is."""
    rng = np.random.default_rng(0)
    late = rng.integers(0, 2, 400)
    study = ls.Study("s", factors={"late": [0, 1]}, outcome={"t": ls.Weibull(ls.Unknown())}, control=0, store=None)
    study.tell({"late": late, "t": rng.weibull(1.5, 400) * np.where(late, 2.0, 1.0)})
    control, row = study.rows()
    low, high = study.set.interval([[-1.0, 1.0]])
    assert (row["hazard_lower"], row["hazard_upper"]) == (np.exp(low[0]), np.exp(high[0]))
    assert row["hazard_lower"] < 2**-1.5 < row["hazard_upper"] < 1 and row["verdict"] == "better"
    assert row["hazard"] == pytest.approx(np.exp(row["z"] - control["z"])) and control["hazard_lower"] is None
    assert "the ratio of hazards lies in" in study.summary() and "hazard ratio" in study._repr_html_()
    axes = study.plot(over_time=False)
    assert "hazard ratio" in axes.get_xlabel()
    plt.close(axes.figure)


def test_survival_curves_cover_every_shape_of_the_set():
    law = ls.Weibull(ls.Unknown())
    study = ls.Study("l", factors={"arm": ["a", "b"]}, outcome={"t": law}, event="seen", store=None)
    nothing = study.survival([{"arm": "a"}], [0.5])
    assert (nothing.lower[0], nothing.upper[0]) == (0.0, 1.0)
    rng = np.random.default_rng(5)
    times = rng.exponential(size=100) ** (1 / 1.5)
    study.tell({"arm": ["a", "b"] * 50, "t": np.minimum(times, 1.2), "seen": times < 1.2})
    at = np.array([0.2, 0.5, 1.0, 2.0])
    curves = study.survival([{"arm": "a"}, {"arm": "b"}], at)
    low, high = (curves[end].to_numpy().reshape(2, 4) for end in ("lower", "upper"))
    inside, s = 0, study.set
    for _ in range(400):
        theta, shape = rng.uniform(-0.8, 0.8, size=2), rng.uniform(0.9, 2.2)
        if s.contains(theta, nuisance=shape):
            surviving = np.exp(-np.exp(theta)[:, None] * at**shape)
            inside += 1
            assert (low <= surviving).all() and (surviving <= high).all()
    assert inside > 20
    assert (low < np.exp(-(at**1.5))).all() and (high > np.exp(-(at**1.5))).all() and (high - low < 0.9).all()


def test_survival_curves_have_bands_of_the_law():
    study = ls.Study("l", factors={"arm": ["a", "b"]}, outcome={"t": ls.Weibull(2.0)}, event="seen", store=None)
    rng = np.random.default_rng(5)
    times = np.sqrt(rng.exponential(size=100))
    study.tell({"arm": ["a", "b"] * 50, "t": np.minimum(times, 1.2), "seen": times < 1.2})
    curves = study.survival([{"arm": "a"}, {"arm": "b"}], [0.5, 1.0])
    low, high = study.set.interval([[1.0, 0.0]])
    first = curves[(curves.row == 1) & (curves.time == 0.5)].iloc[0]
    np.testing.assert_allclose([first.lower, first.upper], np.exp(-0.25 * np.exp([high[0], low[0]])))
    assert (curves.lower < curves.estimate).all() and (curves.estimate < curves.upper).all()
    assert (curves.lower < np.exp(-(curves.time**2))).all() and (curves.upper > np.exp(-(curves.time**2))).all()
    axes = study.plot_survival([{"arm": "b"}, {"arm": "a"}], [0.5, 1.0])
    assert axes.get_ylim() == (0.0, 1.0)
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["arm = b", "arm = a"]
    plt.close("all")
    with pytest.raises(ls.InvalidArgumentError, match="no lifetimes"):
        signup().survival([{"variant": "A"}], [1.0])


@pytest.mark.parametrize("family", [ls.Bernoulli(), ls.Poisson(), ls.Weibull(1.5)], ids=repr)
def test_contrasts_hold_those_of_the_engine(family):
    """The quick bounds of a table are never inside the engine's certified ones, and not much wider."""
    study = ls.Study("c", factors={"arm": ["a", "b"]}, outcome={"y": family}, control="a", store=None)
    y = family.sample(np.tile([-0.5, 0.3], 60), np.random.default_rng(0))
    study.tell({"arm": ["a", "b"] * 60, "y": y if y.ndim == 1 else y[:, 0]})
    row, s = study.rows()[1], study.set
    for of in ("difference", "ratio"):
        low, high = (float(end[0]) for end in s.contrast([0.0, 1.0], [1.0, 0.0], of=of))
        assert row[f"{of}_lower"] <= low + 1e-9 and high - 1e-9 <= row[f"{of}_upper"]
        assert row[f"{of}_upper"] - row[f"{of}_lower"] < 1.2 * (high - low)
