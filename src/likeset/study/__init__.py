"""Studies: data frames in, answers out, nothing lost."""

from likeset.study.store import Store
from likeset.study.study import Study, Told

__all__ = ["Store", "Study", "Told"]
