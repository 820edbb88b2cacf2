"""A laboratory campaign that may be killed at any time: all it knows is in the store.

Run as ``python campaign_worker.py path``; it says on standard output what it has done.
"""

import sys

import numpy as np

import likeset as ls

RUNS, FAILS = 17, 9
FACTORS = {"temperature": (20.0, 90.0), "hours": (1.0, 24.0), "acid": (0.0, 2.0)}


A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])


def truth(row):
    """Hartmann's function as a yield in per cent, from 5 to 95."""
    x = [(row[name] - low) / (high - low) for name, (low, high) in FACTORS.items()]
    return 5.0 + 90.0 * np.exp(-(A * (x - P) ** 2).sum(axis=1)) @ [1.0, 1.2, 3.0, 3.2] / 3.86278


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
