"""What did not go as chosen, in words: every detour of an executor is said, none is silent."""

from __future__ import annotations


class Notes:
    """Sentences, each once, with the number of jobs that it concerns."""

    def __init__(self) -> None:
        self._jobs: dict[str, int] = {}

    def add(self, sentence: str, jobs: int) -> None:
        self._jobs[sentence] = self._jobs.get(sentence, 0) + jobs

    def take(self) -> dict[str, int]:
        """Everything so far, which is then forgotten: what a process of a pool sends home."""
        taken, self._jobs = self._jobs, {}
        return taken

    def merge(self, jobs: dict[str, int]) -> None:
        for sentence, count in jobs.items():
            self.add(sentence, count)

    def lines(self) -> list[str]:
        return [f"{sentence} ({jobs} job{'s' if jobs != 1 else ''})" for sentence, jobs in self._jobs.items()]
