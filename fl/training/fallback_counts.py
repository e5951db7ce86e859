"""What was computed otherwise than the chosen executor would: every such fallback is reported."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock


class Fallbacks:
    """Sentences, each with the number of jobs that it concerns."""

    def __init__(self) -> None:
        self._jobs: dict[str, int] = {}
        self._lock = Lock()

    def add(self, sentence: str, jobs: int) -> None:
        with self._lock:
            self._jobs[sentence] = self._jobs.get(sentence, 0) + jobs

    def counts(self) -> dict[str, int]:
        """Sentence -> number of jobs, in the order in which they were first added."""
        return dict(self._jobs)

    def take(self) -> dict[str, int]:
        """All counts, which are then forgotten."""
        taken, self._jobs = self._jobs, {}
        return taken

    def merge(self, counts: Mapping[str, int]) -> None:
        """Adds other counts, such as those of a run that is resumed."""
        for sentence, jobs in counts.items():
            self.add(sentence, jobs)

    def lines(self) -> list[str]:
        """One line per sentence, for the end of a run and its summary."""
        return [f"{what} ({n} job{'s' if n > 1 else ''})" for what, n in self._jobs.items()]
