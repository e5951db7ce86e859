"""Rounds as they follow from the other tables."""

import pandas as pd
import pytest

from edgesim.verification.check_result import FAILED, PASSED
from edgesim.verification.derived_figures import check_device_rounds, check_rounds


@pytest.mark.parametrize(
    ("column", "value"),
    [("loss", 2.0), ("accuracy", 0.55), ("accuracy_std", 0.1)],
)
def test_means_over_devices_are_those_of_their_scores(column, value):
    means = {"loss": [1.5], "accuracy": [0.6], "accuracy_std": [0.2]}
    tables = {
        "rounds": pd.DataFrame({"round": [0], "time_s": [1.0], **means}),
        "device_rounds": pd.DataFrame({"round": [0], "status": ["arrived"], "rho": [0.0]}),
        "spans": pd.DataFrame({"round": [0], "energy_j": [0.0]}),
        "scores": pd.DataFrame({"round": [0, 0], "loss": [1.0, 2.0], "accuracy": [0.4, 0.8]}),
    }
    assert check_rounds(tables).outcome == PASSED
    tables["rounds"][column] = value
    found = check_rounds(tables)
    assert found.outcome == FAILED and f"{column} is {value}" in found.detail


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("arrived", 2),
        ("dispatched", 6),
        ("discarded", 0),
        ("cancelled", 1),
        ("unfinished", 0),
        ("staleness_mean", 1.0),
        ("staleness_max", 3.0),
        ("accuracy_std", 0.2),
    ],
)
def test_counts_and_staleness_of_a_round_are_those_of_its_jobs(column, value):
    """Five jobs: three arrive, of which one waits to the end unused; one is late and lost."""
    counts = {"arrived": [3], "late": [1], "dispatched": [5], "discarded": [1], "unfinished": [1]}
    others = {"cancelled": [0], "staleness_mean": [0.5], "staleness_max": [1.0]}
    tables = {
        "rounds": pd.DataFrame(
            {"round": [0], "time_s": [1.0], **counts, **others, "accuracy_std": [float("nan")]}
        ),
        "device_rounds": pd.DataFrame(
            {
                "round": 0,
                "status": ["arrived", "arrived", "late", "discarded", "unfinished"],
                "finish_s": [0.5, 0.6, 0.7, 0.8, float("nan")],
                "rho": 0.0,
                "version_in": 0,
                "version_out": [1, 1, -1, -1, -1],
                "staleness": [0, 1, 0, 2, 0],
            }
        ),
        "spans": pd.DataFrame({"round": [0], "energy_j": [0.0]}),
        "scores": pd.DataFrame({"round": [], "loss": [], "accuracy": []}),
    }
    assert check_rounds(tables).outcome == PASSED
    tables["rounds"][column] = value
    found = check_rounds(tables)
    assert found.outcome == FAILED and f"{column} is {value}" in found.detail


@pytest.mark.parametrize("column", ["finish_s", "dispatched_s"])
def test_a_job_begins_with_its_first_span_and_finishes_with_its_last(column):
    """The device waits, works from 1 to 3 s, is repaired, begins again at 3.5 s, ends at 6 s."""
    starts_s = [0.0, 1.0, 1.0, 3.0, 3.5, 3.5, 5.0, 6.0]
    phases = ["idle", "download", "train", "repair", "download", "train", "upload", "idle"]
    spans = {"round": 0, "device": 0, "phase": phases, "start_s": starts_s}
    spans |= {"end_s": [1.0, 1.0, 3.0, 3.5, 3.5, 5.0, 6.0, 7.0], "bits": 0.0, "energy_j": 0.0}
    row = {"round": 0, "device": 0, "status": "arrived", "share": 1.0, "rho": 0.0, "job": 4}
    tables = {
        "spans": pd.DataFrame(spans | {"job": [-1, 4, 4, -1, 4, 4, 4, -1]}),
        "device_rounds": pd.DataFrame([row | {"finish_s": 5.0, "dispatched_s": 1.0}]),
    }
    assert check_device_rounds(tables).outcome == PASSED
    tables["device_rounds"][column] *= 1.01
    found = check_device_rounds(tables)
    assert found.outcome == FAILED and f"{column} is " in found.detail
