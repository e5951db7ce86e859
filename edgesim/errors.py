"""The two errors of a run that are nobody's bug."""


class RunError(Exception):
    """The scenario asks for something that is not there or does not fit: one sentence; exit code 2."""


class InfeasibleScenario(Exception):
    """No device can meet the latency threshold: one sentence with the least that would do; exit code 3."""
