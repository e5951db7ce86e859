"""Latencies of rounds beside the threshold."""

from pytest import approx

from reports.run_data.statistics.round_latencies import threshold_gap


def test_gap_to_the_threshold(scheme_of):
    gap = threshold_gap(scheme_of(latency_s=(0.020, 0.025, 0.025 * (1 + 1e-6), 0.035)))
    assert (gap.above, gap.below) == (0.25, 0.25)  # the engine's slack of 1e-6 is on the threshold
    assert (gap.mean_s, gap.least_s, gap.most_s) == (approx(0.02625, rel=1e-6), 0.020, 0.035)


def test_no_threshold_no_gap(scheme_of):
    assert threshold_gap(scheme_of(threshold_s=None)) is None
