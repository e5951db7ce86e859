"""Errors that a scenario, a folder or the user's code can cause; each is one sentence."""

COMMAND_LINE = "command line"  # place of what was given there, as file:line is that of a file


class EdgesimError(Exception):
    """Base of all errors of this package."""


class ScenarioError(EdgesimError):
    """Bad input: one sentence with the place, what was given, what is allowed; exit code 2."""


class RunError(EdgesimError):
    """The scenario asks for something that is not there or does not fit; exit code 2."""


class InfeasibleScenarioError(EdgesimError):
    """No device can meet the latency threshold; says the least that would do; exit code 3."""
