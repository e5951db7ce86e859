"""Rounds as they follow from the other tables."""

import pandas as pd
import pytest

from edgesim.verification.check_result import FAILED, PASSED
from edgesim.verification.derived_figures import check_rounds


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
