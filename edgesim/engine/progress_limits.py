"""How often a job, or a version of the model, is begun again before a run is refused."""

from __future__ import annotations

from edgesim.errors import RunError
from fl.contracts import Array

MOST_RESTARTS = 5_000  # of one job
MOST_IN_VAIN = 5_000  # jobs one after the other, and 5 for each that may be at work
MOST_FAILURES = 50  # of the server before a version is made


class NoProgressError(RunError):
    """Jobs, or the server, fail so often that no version of the model is ever made."""


class RestartsError(NoProgressError):
    """A job is begun again and again.

    Args:
        device: its number.
        restarts: how often.
        now_s: simulated time, s.
    """

    def __init__(self, device: int, restarts: int, now_s: float) -> None:
        super().__init__(device, restarts, now_s)
        self.device, self.restarts, self.now_s = device, restarts, now_s

    def __str__(self) -> str:
        return (
            f"a job of device {self.device} has started {self.restarts} times by {self.now_s:g} s "
            "of simulated time and never ended; make the device fail or leave less often, or let "
            "jobs go on with on_leave or on_failure: resume"
        )

    def of(self, numbers: Array) -> RestartsError:
        """The same error with the device's own number, given by index [K]."""
        return RestartsError(int(numbers[self.device]), self.restarts, self.now_s)


def check_restarts(restarts: int, device: int, now_s: float) -> None:
    """Refuse a job that was begun again too often.

    Args:
        restarts: how often.
        device: its number.
        now_s: simulated time, s.

    Raises:
        RestartsError: more often than `MOST_RESTARTS`.
    """
    if restarts > MOST_RESTARTS:
        raise RestartsError(device, restarts, now_s) from None


def check_version(g: int, in_vain: int, together: int, failures: int, now_s: float) -> None:
    """Refuse a version of which next to no job ends, or none before the server fails.

    Args:
        g: number of the version.
        in_vain: jobs, and waits for a device, one after the other without an update.
        together: jobs that start together, which may all fail before the first of them can be done.
        failures: of the server since the version before.
        now_s: simulated time, s.

    Raises:
        NoProgressError: far more jobs in a row were in vain than devices that start together
            explain, or a version was begun too often.
    """
    where = f"by {now_s:g} s of simulated time without a version {g} of the model"
    if failures >= MOST_FAILURES:
        raise NoProgressError(
            f"the server failed {failures} times {where}, since it is never up for as long as one "
            "takes; make it fail less often (server.up)"
        )
    if in_vain > MOST_IN_VAIN + 5 * together:
        raise NoProgressError(
            f"{in_vain} times in a row a job, or the wait for a device, brought no update {where}; "
            "make devices fail or leave less often, or let jobs go on with on_leave or "
            "on_failure: resume"
        )
