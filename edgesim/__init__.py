"""edgesim: a wireless edge-network co-simulator for federated learning.

>>> import edgesim
>>> scenario = edgesim.load("scenarios/demo.yaml", ["rounds=2"], label="joint")  # doctest: +SKIP
>>> run = edgesim.simulate(scenario, seed=0)                                     # doctest: +SKIP
>>> run.rounds[["round", "time_s", "accuracy"]]                                  # doctest: +SKIP
>>> edgesim.load_sweep("runs/demo-sweep").points                                 # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from edgesim.shadowed_packages import refuse_hidden

__version__ = "0.1.0"
__all__ = ["load", "load_run", "load_sweep", "plot", "simulate"]

refuse_hidden("fl", "solvers")  # a file fl.py beside the user's script comes first
import_module("fl")  # says how MKL rounds, before anything multiplies

if TYPE_CHECKING:
    from types import ModuleType

    from edgesim.results.loaded_results import load_run, load_sweep
    from edgesim.runs.run import simulate
    from edgesim.scenario.loader import load

    plot: ModuleType


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Import what is named on first use: the command line answers before numpy is loaded.

    ``edgesim.plot`` is a module of another package, which registers it by an entry point.
    """
    if name == "load":
        from edgesim.scenario.loader import load

        return load
    if name == "simulate":
        from edgesim.runs.run import simulate

        return simulate
    if name in ("load_run", "load_sweep"):
        from edgesim.results import loaded_results

        return getattr(loaded_results, name)
    if not name.startswith("_"):
        from edgesim.plugin_modules import plugin_module

        if (module := plugin_module(name)) is not None:
            return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
