"""What did not go as chosen, in words: every detour of an executor is said, none is silent."""

from __future__ import annotations

IN_EVALUATION = "in evaluation: "  # so begins what concerns batches of test samples instead of jobs


class Notes:
    """Sentences, each once, with the number of jobs that it concerns, or of batches in evaluation."""

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
        return [
            f"{sentence} ({counted(sentence, number)})" for sentence, number in self._jobs.items()
        ]


def counted(sentence: str, number: int) -> str:
    one, more = ("batch", "batches") if sentence.startswith(IN_EVALUATION) else ("job", "jobs")
    return f"{number} {one if number == 1 else more}"
