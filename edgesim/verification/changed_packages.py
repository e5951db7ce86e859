"""Plans that differ because an installed package's code is no longer that of the run."""

from __future__ import annotations

from typing import Any

from edgesim.extensions.entry_points import entries_named, package_of
from edgesim.runs.continuation import is_same_run
from edgesim.runs.setup.setup import Setup
from edgesim.verification.check_result import FAILED, SKIPPED, CheckResult


def by_the_same_packages(
    setup: Setup, facts: dict[str, Any] | None, checks: list[CheckResult]
) -> list[CheckResult]:
    """The checks; those that failed judge nothing where packages' code differs from the run's.

    A run's folder keeps copies of the user's own files, but not of what is installed. That some of
    it differs is known by the run's fingerprint.

    Args:
        setup: of the run, as it is made now.
        facts: of the run's last state; None: not known.
        checks: of its plans.
    """
    packages = ", ".join(sorted({package_of(entry) for entry in entries_named(setup.scenario)}))
    failed = any(check.outcome == FAILED for check in checks)
    if not packages or not failed or facts is None:
        return checks
    if is_same_run(setup, facts, facts.get("rounds", facts["g"] + 1)):
        return checks
    reason = (
        f"not planned again as it was: the code of {packages}, another version or the data differ "
        "from those of the run"
    )
    return [
        check._replace(outcome=SKIPPED, detail=reason) if check.outcome == FAILED else check
        for check in checks
    ]
