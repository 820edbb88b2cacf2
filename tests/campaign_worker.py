"""A laboratory campaign that may be killed at any time: all it knows is in the store.

Run as ``python campaign_worker.py path``; it says on standard output what it has done.
"""

import sys

import numpy as np

import likeset as ls

RUNS, FAILS = 17, 9
FACTORS = {"temperature": (20.0, 90.0), "hours": (1.0, 24.0), "acid": (0.0, 2.0)}


def truth(row):
    """Branin's function as a yield in per cent; the third factor does nothing."""
    u, v = 15 * (row["temperature"] - 20) / 70 - 5, 15 * (row["hours"] - 1) / 23
    height = (v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10
    return 95.0 - 90.0 * (height - 0.398) / 307.7


def opened(store):
    return ls.Study(
        "yield", factors=FACTORS, outcome={"yield": ls.Gaussian(sigma=ls.Unknown())}, model="smooth", range=(0, 100),
        alpha=0.1, units="%", store=store,
    )  # fmt: skip


def step(study):
    """Ask for two settings, or tell the outcome of the oldest that is pending; what was done."""
    pending = study.pending()
    if not pending:
        return "asked", study.ask(n=2)
    row = pending[0]
    if row["run"] == FAILS:
        study.tell([row], failed=True)
    else:  # the noise belongs to the run, whenever and wherever it is made
        study.tell([row | {"yield": truth(row) + 3.0 * np.random.default_rng(row["run"]).standard_normal()}])
    return "told", row


def campaign(study):
    while study.n < RUNS:
        yield step(study)


if __name__ == "__main__":
    for what, _ in campaign(opened(sys.argv[1])):
        print(what, flush=True)
