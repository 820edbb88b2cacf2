"""Settings shared by all tests."""

import os

import matplotlib

matplotlib.use("Agg")
os.environ.setdefault("LIKESET_QUIET", "1")  # what tests read on stderr must not depend on the cache
