"""edgesim: a wireless edge-network co-simulator for federated learning.

>>> import edgesim
>>> scenario = edgesim.load("scenarios/demo.yaml", ["rounds=2"], label="joint")      # doctest: +SKIP
>>> run = edgesim.simulate(scenario, seed=0)                                           # doctest: +SKIP
>>> run.rounds[["round", "time_s", "accuracy"]]                                        # doctest: +SKIP
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["load", "simulate"]


def load(path, overrides=(), label=None):
    """Read a scenario file; see `edgesim.scenario.loader.load`."""
    from edgesim.scenario.loader import load as read

    return read(path, overrides, label=label)


def simulate(scenario, **options):
    """Run a scenario; see `edgesim.runs.run.simulate`."""
    from edgesim.runs.run import simulate as run

    return run(scenario, **options)
