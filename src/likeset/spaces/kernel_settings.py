"""scikit-learn kernels as plain settings, and back: names and numbers, no pickled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.errors import FileFormatError
from likeset.extras import optional_packages

_MODULE = "sklearn.gaussian_process.kernels"


def kernel_settings(kernel: Any) -> dict[str, Any] | None:
    """Name and parameters of a scikit-learn kernel, sums and products included; None for any other callable."""
    if type(kernel).__module__ != _MODULE:
        return None
    parameters: dict[str, Any] = {}
    for name, value in kernel.get_params(deep=False).items():
        if hasattr(value, "get_params"):
            value = kernel_settings(value)
            if value is None:
                return None
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, tuple):
            value = list(value)
        parameters[name] = value
    return {"type": type(kernel).__name__, "parameters": parameters}


def kernel_from_settings(settings: dict[str, Any]) -> Any:
    """The kernel that ``kernel_settings`` described."""
    with optional_packages():
        from sklearn.gaussian_process import kernels

    cls = getattr(kernels, str(settings["type"]), None)
    if not (isinstance(cls, type) and issubclass(cls, kernels.Kernel)):
        raise FileFormatError(f"the file names an unknown kernel {settings['type']!r}; is scikit-learn too old?")
    return cls(**{name: _parameter(value) for name, value in settings["parameters"].items()})


def _parameter(value: Any) -> Any:
    if isinstance(value, dict):
        return kernel_from_settings(value)
    return tuple(value) if isinstance(value, list) else value
