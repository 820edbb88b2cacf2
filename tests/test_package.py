"""The package itself: its public names, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys

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
