"""What became of jobs, by hand."""

import numpy as np
import pandas as pd
import pytest
from pytest import approx

from edgesim.records.rows_from_spans import ENDINGS
from reports.run_data import job_outcomes as jobs
from reports.text.summary_tables import cost_table


def test_every_job_has_a_kind(overlapping):
    run = overlapping.first
    found = list(jobs.kinds(run))
    assert found[:5] == ["fresh", "stale", "stale", "discarded", "fresh"]
    assert found[5:] == ["cancelled", "unfinished", "held"]
    assert jobs.overlaps(run) and jobs.any_overlaps([overlapping])
    assert jobs.used_updates(run).tolist() == [3, 1, 0]


def test_every_way_in_which_a_job_ends_is_a_kind():
    assert {*ENDINGS, "late", "failed"} <= {*jobs.KINDS}


def test_jain_of_shares():
    assert jobs.jain_index(np.array([1, 1, 2])) == approx(0.888889, abs=1e-6)
    assert jobs.jain_index(np.array([5, 5])) == 1.0
    assert jobs.jain_index(np.array([7, 0, 0, 0])) == 0.25
    assert np.isnan(jobs.jain_index(np.zeros(3)))


def test_a_device_that_never_took_part_counts(overlapping):
    assert jobs.jain_of(overlapping.first) == approx(16 / (3 * 10))


def test_waste_is_that_of_jobs_3_5_6_and_7(overlapping):
    run = overlapping.first
    assert jobs.wasted(run, "energy_j") == approx((4 + 6 + 7 + 8) / 10)
    assert jobs.wasted(run, "bits_up") == approx((4 + 6 + 7 + 8) * 1e6)
    (row,) = cost_table([overlapping]).rows
    names = [column.name for column in cost_table([overlapping]).columns]
    assert row[names.index("wasted_bits")] == approx(25e6 * 2)
    assert row[names.index("wasted_energy_j")] == approx(2.5)


@pytest.mark.parametrize("cut", [False, True])
def test_late_uploads_are_used_unless_the_deadline_cut_them(scheme_of, cut):
    scheme = scheme_of(
        latency_s=(0.05, 0.02), accuracy=(0.5, 0.6)
    )  # the first round is late, two of four jobs
    run = scheme.first
    if cut:
        run.device_rounds.loc[run.device_rounds["status"] == "late", "finish_s"] = np.nan
    assert not jobs.overlaps(run) and not jobs.numbers_jobs(run)
    assert jobs.used_updates(run).tolist() == ([1, 1] if cut else [2, 2])
    # 0.05 J to compute and 0.2 J to send, of two devices in one round
    assert jobs.wasted(run, "energy_j") == approx(0.5 if cut else 0.0)
    names = [column.name for column in cost_table([scheme]).columns]
    assert ("wasted_energy_j" in names) == cut


def test_idling_is_no_wasted_work(scheme_of):
    run = scheme_of(latency_s=(0.05,), accuracy=(0.5,)).first
    run.device_rounds["status"] = "failed"
    run.spans.loc[run.spans["phase"] == "upload", "phase"] = "idle"
    assert jobs.wasted(run, "energy_j") == approx(0.1)


def test_waste_below_a_cloud_is_that_of_the_lost_rounds_of_an_edge(scheme_of):
    run = scheme_of(latency_s=(0.02,), accuracy=(0.5,)).first
    # two rounds of the edge, of which device 1 loses the second: 0.25 J of 1 J
    for name in ("device_rounds", "spans"):
        table = getattr(run, name)
        twice = pd.concat([table.assign(edge_round=i) for i in (0, 1)], ignore_index=True)
        object.__setattr__(run, name, twice)
    lost = (run.device_rounds["device"] == 1) & (run.device_rounds["edge_round"] == 1)
    run.device_rounds.loc[lost, "status"] = "failed"
    assert jobs.wasted(run, "energy_j") == approx(0.25)
