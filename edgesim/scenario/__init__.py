"""Scenario files: YAML with units in, checked immutable objects in SI out."""

from edgesim.errors import ScenarioError
from edgesim.scenario.loader import Scenario, expand, load

__all__ = ["Scenario", "ScenarioError", "expand", "load"]
