"""How often a job, or a version, is begun again: the last number that is let pass."""

import pytest

from edgesim.engine.progress_limits import NoProgressError, check_restarts, check_version


def test_a_job_may_start_again_5000_times():
    check_restarts(5_000, device=3, now_s=12.5)
    with pytest.raises(NoProgressError, match=r"device 3 has started 5001 times by 12\.5 s"):
        check_restarts(5_001, device=3, now_s=12.5)


def test_a_server_may_fail_49_times_before_a_version():
    check_version(7, in_vain=0, together=1, failures=49, now_s=2.0)
    with pytest.raises(NoProgressError, match=r"failed 50 times by 2 s .* without a version 7 "):
        check_version(7, in_vain=0, together=1, failures=50, now_s=2.0)


def test_jobs_in_vain_are_5000_and_5_for_each_that_starts_with_them():
    """With 100 at a time 5,500: each of the 100 may fail five times."""
    check_version(0, in_vain=5_005, together=1, failures=0, now_s=1e3)
    check_version(0, in_vain=5_500, together=100, failures=0, now_s=1e3)
    for in_vain, together in ((5_006, 1), (5_501, 100)):
        with pytest.raises(NoProgressError, match=f"^{in_vain} times in a row .* by 1000 s"):
            check_version(0, in_vain, together, failures=0, now_s=1e3)
