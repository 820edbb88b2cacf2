"""The package itself: its public names, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import likeset as ls


def test_every_public_name_loads_and_is_listed():
    assert len(ls.__all__) == len(set(ls.__all__)) > 40
    for name in ls.__all__:
        assert getattr(ls, name) is not None
    assert set(ls.__all__) <= set(dir(ls))


def test_the_names_of_the_design_are_public():
    promised = {"ConfidenceSequence", "FTRL", "VAW", "Mixture", "Fixed", "Aggregate", "PlugIn", "Linear", "RKHS"}
    promised |= {"Gaussian", "Laplace", "Poisson", "Bernoulli", "Binomial", "Weibull", "LogWeibull", "Exponential"}
    promised |= {"CustomFamily", "Unweighted", "BiasWeighting", "Windows", "UCB", "Elimination", "LowerBound", "load"}
    assert promised <= set(ls.__all__)


@pytest.mark.parametrize("module", ["bandits", "checks", "errors", "families", "plots", "predictors", "spaces"])
def test_modules_are_found_without_importing_them_by_name(module):
    program = f"import likeset; print(likeset.{module}.__name__, {module!r} in likeset.__all__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"likeset.{module}", "False"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = ls.nothing_of_the_kind


def test_importing_loads_no_compiler():
    program = "import sys, likeset; print('numba' in sys.modules); likeset.Gaussian; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


ROOT = Path(__file__).parent.parent
LEFT_OUT = {".ci", ".git", ".gitignore", "__pycache__", "likeset.egg-info"}


def in_source_distribution(path):
    """Whether MANIFEST.in takes a file along (by its include and recursive-include lines)."""
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        command, *words = line.split() or ["#"]
        if command == "include" and str(path) in words:
            return True
        below = command == "recursive-include" and path.parts[0] == words[0]
        if below and any(fnmatch(path.name, pattern) for pattern in words[1:]):
            return True
    return str(path) in ("MANIFEST.in", "pyproject.toml")  # always


@pytest.mark.skipif(not (ROOT / "MANIFEST.in").exists(), reason="not run from the sources")
def test_a_source_distribution_holds_tests_data_and_docs():
    listed = [
        p.relative_to(ROOT) for folder in ("src", "tests", "docs", "benchmarks") for p in (ROOT / folder).rglob("*")
    ]
    listed += [
        p.relative_to(ROOT) for p in ROOT.iterdir() if p.suffix in (".md", ".toml") or p.name in ("Makefile", "LICENSE")
    ]
    files = [p for p in listed if (ROOT / p).is_file() and not LEFT_OUT & set(p.parts)]
    assert len(files) > 250
    assert [str(p) for p in files if not in_source_distribution(p)] == []


def test_requirements_are_new_enough_for_the_command_line():
    """With typer before 0.16 the command line breaks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    minimum = {r.split(">=")[0]: r.split(">=")[1] for r in project["optional-dependencies"]["cli"]}
    assert tuple(map(int, minimum["typer"].split("."))) >= (0, 16)


def test_the_oldest_versions_tested_are_the_oldest_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert extras["all"] == ["likeset[plots,cli,kernels,cluster,study,web]"]
    every = [r for name in ("plots", "cli", "kernels", "cluster", "study", "web") for r in extras[name]]
    needed = [*project["dependencies"], *(r for r in every if not r.startswith("likeset["))]
    allowed = {r.split(">=")[0]: r.split(">=")[1] for r in needed}
    lines = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    same_length = {name: (version + ".0.0").split(".")[:3] for name, version in allowed.items()}
    assert {name: (version + ".0.0").split(".")[:3] for name, version in tested.items()} == same_length


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == ls.__version__
    assert f"\nversion: {ls.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("Bernouli", "Bernoulli"), ("Poison", "Poisson"), ("laplace", "Laplace"), ("predictor", "predictors")],
)
def test_a_misspelt_name_is_told_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"'likeset' has no attribute '{name}'; did you mean '{meant}'") as error:
        getattr(ls, name)
    assert error.value.name == name
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing_like_it'$"):
        ls.nothing_like_it  # noqa: B018
    assert not hasattr(ls, name)
