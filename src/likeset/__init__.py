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

_loaded, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_MODULES = ("bandits", "checks", "errors", "families", "plots", "predictors", "sklearn", "spaces", "study")
# Modules are there for those who look into them, without being part of `from likeset import *`.
__all__ = [name for name in __all__ if name not in _MODULES]


def __getattr__(name: str) -> object:
    """A public name, loaded now; for one that is not there, what may have been meant."""
    try:
        return _loaded(name)
    except AttributeError:
        known = [*__all__, *_MODULES]
        if name in known:  # something is wrong inside of it
            raise
        from difflib import get_close_matches

        alike = [] if name.startswith("_") else get_close_matches(name, known, 1, 0.75)
        meant = f"; did you mean {alike[0]!r}?" if alike else ""
        raise AttributeError(f"module 'likeset' has no attribute {name!r}{meant}", name=name) from None
