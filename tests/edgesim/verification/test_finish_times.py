"""Finish times of uploads against Liu (28)."""

from types import SimpleNamespace

import edgesim
from edgesim.runs.setup.make_setup import set_up
from edgesim.verification.check_result import PASSED, SKIPPED, CheckResult
from edgesim.verification.finish_times import check_finish
from edgesim.verification.planned_rounds import together


def test_an_edge_that_asked_nobody_has_no_upload_to_check(static_scenario):
    """It was not checked, as "the plans could not be made again", and with it the other edges."""
    found = check_finish(set_up(edgesim.load(static_scenario)), [], {})
    assert (found.outcome, found.detail) == (PASSED, "0 uploads within 1e-09")


def test_an_edge_that_could_not_be_checked_is_not_hidden_by_the_first():
    checks = [CheckResult("x", PASSED, "fine"), CheckResult("x", SKIPPED, "for a reason")]
    edges = SimpleNamespace(edges=[SimpleNamespace(number=n) for n in (0, 1)])
    assert together(checks, edges) == CheckResult("x", SKIPPED, "edge 1: for a reason")
