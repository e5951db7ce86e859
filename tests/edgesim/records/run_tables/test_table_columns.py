"""The columns of every table are those that the documentation gives."""

from edgesim.records.run_tables.table_columns import ROUND_SCHEMAS as SCHEMAS

COLUMNS = {
    "rounds": "round time_s latency_s selected arrived late failed infeasible loss accuracy accuracy_std rho_mean "  # noqa: E501
    "rho_max bits_up bits_down flops cycles energy_j solver_residual pruning_per_hz pruning_per_s",
    "device_rounds": "round device status share rho rate_bps download_s compute_s upload_s finish_s bits_up bits_down "  # noqa: E501
    "flops cycles energy_j",
    "spans": "round device phase start_s end_s bits cycles energy_j",
    "scores": "round device loss accuracy",
    "measures": "round name value",
}


def test_columns_are_those_of_the_contract():
    assert {name: " ".join(SCHEMAS[name]) for name in COLUMNS} == COLUMNS
