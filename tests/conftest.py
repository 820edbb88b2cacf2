"""Settings shared by all tests."""

import matplotlib

matplotlib.use("Agg")
