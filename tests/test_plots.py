"""Pictures: scales, themes, colours that can be told apart, typed refusals."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

import likeset as ls
from likeset.plots import DARK, LIGHT, both_themes, plot_band, plot_intervals, plot_over_time, plot_sets, themed
from likeset.plots.theme import DASHES, plain_svg


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def counts():
    seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=1, bound=3.0))
    seq.update([[1.0]] * 30, np.random.default_rng(0).poisson(8.0, size=30))
    return seq


def test_bands_of_counts_are_on_the_scale_of_the_mean():
    plt.close("all")  # other tests of the process may have left axes to draw on
    seq, x = counts(), np.array([0.5, 1.0])
    axes = plot_band(seq, x)
    low, high = seq.set.interval(x[:, None])
    edges = [line.get_ydata() for line in axes.lines]
    np.testing.assert_allclose(edges, [np.exp(low), np.exp(high)])
    assert axes.get_ylabel() == "mean count"
    axes = plot_band(seq, x, scale="predictor", axes=plt.figure().add_subplot())
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines], [low, high])


def test_a_mean_that_falls_with_z_keeps_lower_below_upper_and_censored_times_are_hollow():
    seq = ls.ConfidenceSequence(ls.Weibull(2.0), ls.Linear(dim=1, bound=2.0))
    rows = [(0.5, 1), (1.5, 0), (0.9, 1)]
    seq.update([[1.0]] * 3, rows)
    axes = plot_band(seq, [0.5, 1.0], data=([1.0] * 3, rows))
    low, high, deaths, censored = (line.get_ydata() for line in axes.lines)
    assert np.all(low < high)
    assert (list(deaths), list(censored)) == ([0.5, 0.9], [1.5])


def test_a_band_without_ends_is_drawn_and_leaves_the_axes_readable():
    seq = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(dim=1, bound=np.inf))
    axes = plot_band(seq, [1.0, 2.0], data=([1.0], [0.3]))
    assert np.all(np.isfinite(axes.get_ylim()))
    axes.figure.canvas.draw()


def test_functions_return_axes_and_never_show(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("show was called"))
    seq = counts()
    plane = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(dim=2, bound=1.0))
    plane.update([[1.0, 0.0]], [0.2])
    for draw in (
        lambda axes: plot_band(seq, [1.0], axes=axes),
        lambda axes: plot_sets([plane.set], axes=axes),
        lambda axes: plot_over_time([1, 2], [0, 0], [1, 1], axes=axes),
        lambda axes: plot_intervals([0], [1], axes=axes),
    ):
        axes = plt.figure().add_subplot()
        assert draw(axes) is axes


def test_the_moment_of_certainty_is_the_first_look_that_excludes_the_reference():
    low = np.array([[np.nan, -1.0], [-0.5, -0.4], [0.1, -0.3], [-0.1, -0.2]])
    high = np.array([[np.nan, 1.0], [0.5, 0.6], [0.4, 0.5], [0.3, -0.1]])
    axes = plot_over_time([5, 10, 20, 40], low, high, labels=["B", "C"], reference=0.0)
    assert [text.get_text() for text in axes.texts] == ["certain at 20", "certain at 40"]
    axes = plot_over_time([1, 2], [-1, -1], [1, 1], reference=0.0, axes=plt.figure().add_subplot())
    assert not axes.texts


def test_decided_intervals_are_drawn_differently():
    axes = plot_intervals([-0.1, 0.2], [0.3, 0.5], reference=0.0)
    widths = [line.get_linewidth() for line in axes.lines[:2]]
    assert widths[0] < widths[1]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_follow_the_paper(theme):
    chosen = {"light": LIGHT, "dark": DARK}[theme]
    with themed(theme):
        axes = plot_over_time([1, 2], [0, 0], [1, 1])
    assert axes.lines[0].get_color() == chosen.colour(0)


# Machado, Oliveira and Fernandes (2009), complete protanopia and deuteranopia, for linear RGB.
SEEN_BY = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "everyone": np.eye(3),
}


def lab(colour, seen_by):
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)])
    linear = np.clip(np.asarray(seen_by) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(a, b, seen_by):
    return float(np.linalg.norm(lab(a, seen_by) - lab(b, seen_by)))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("seen_by", SEEN_BY)
def test_series_can_be_told_apart(theme, seen_by):
    pairs = itertools.combinations(theme.series, 2)
    assert min(distance(a, b, SEEN_BY[seen_by]) for a, b in pairs) > 15
    assert min(distance(a, theme.paper, SEEN_BY[seen_by]) for a in theme.series) > 30
    assert len(set(map(str, DASHES))) >= len(theme.series)  # and in grey, by their dashes


def test_red_and_green_would_not_pass():
    assert distance("#b04020", "#707010", SEEN_BY["everyone"]) > 50
    assert distance("#b04020", "#707010", SEEN_BY["deuteranopia"]) < 1


def test_the_first_three_series_differ_in_grey():
    for theme in (LIGHT, DARK):
        lightness = sorted(lab(colour, np.eye(3))[0] for colour in theme.series[:3])
        assert min(np.diff(lightness)) > 10


def test_one_file_for_both_themes():
    with themed("light"):
        axes = plot_over_time([1, 2], [0, 0], [1, 1], labels=["<script>alert(1)</script>"], reference=0.5)
    text = both_themes(axes.figure)
    ElementTree.fromstring(text)
    assert (
        "prefers-color-scheme: dark" in text
        and "<script" not in text
        and "http" not in text.split("<style>")[1].split("</style>")[0]
    )
    body = text.split("</style>", 1)[1]
    assert LIGHT.colour(0) not in body and "var(--series-0)" in body and "var(--fill-0)" in body
    assert DARK.colour(0) in plain_svg(axes.figure, DARK) and LIGHT.colour(0) not in plain_svg(axes.figure, DARK)
    assert both_themes(axes.figure) == text  # the same picture is the same file


@pytest.mark.parametrize(
    "call",
    [
        lambda: plot_band(3, [1.0]),
        lambda: plot_band(counts(), [1.0], scale="log"),
        lambda: plot_band(counts(), [1.0], axes=3),
        lambda: plot_band(counts(), [1.0], data=([1.0], [1, 2])),
        lambda: plot_over_time([1, 2], [0], [1]),
        lambda: plot_over_time([1, 2], [0, 0], [[1], [2], [3]]),
        lambda: plot_over_time([0, 2], [0, 0], [1, 1], log=True),
        lambda: plot_over_time([1], [0], [1], labels=["a", "b"]),
        lambda: plot_intervals([1], [1, 2]),
        lambda: both_themes("figure"),
        lambda: themed("grey").__enter__(),
    ],
)
def test_refusals(call):
    with pytest.raises(ls.LikesetError):
        call()
