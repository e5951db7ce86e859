"""A report stands beside a paper for schemes that its own file has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgesim.scenario.documents.document import Document


def check_reported_schemes(scheme: Document, written: Any, labels: Iterable[str | None]) -> None:
    """Refuse a label of ``report.schemes`` that no scheme has: it would be compared with nothing.

    Args:
        scheme: of a file with schemes, resolved.
        written: the schemes as the file has them, of which the command line may remove some.
        labels: of those that are left.

    Raises:
        ScenarioError: with the labels that there are.
    """
    named = scheme.find(("report", "schemes"))
    known = dict.fromkeys([*(written if isinstance(written, dict) else ()), *labels])
    for label in named if isinstance(named, dict) else ():
        if label not in known:
            has = ", ".join(map(str, known))
            raise scheme.error(
                ("report", "schemes", label), f"names no scheme of the file, which has {has}"
            )
