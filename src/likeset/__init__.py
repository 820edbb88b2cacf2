"""likeset: anytime-valid likelihood-ratio confidence sets.

>>> import likeset as ls
>>> seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(dim=1, bound=3.0), alpha=0.05)
>>> seq.update([[1.0]] * 5, [1, 1, 0, 1, 1])
>>> seq.set.contains([0.5])
True
"""

# Names are loaded when they are first used, from the modules that __init__.pyi names: importing likeset is quick.
import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_MODULES = ("bandits", "checks", "errors", "families", "plots", "predictors", "sklearn", "spaces", "study")
# Modules are there for those who look into them, without being part of `from likeset import *`.
__all__ = [name for name in __all__ if name not in _MODULES]
