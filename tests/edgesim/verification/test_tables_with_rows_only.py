"""Tables that a run has only if they say something are checked as the others are."""

import hashlib

import pytest

import edgesim
from edgesim.records.checksums import SUMS
from edgesim.records.run_tables.table_files import FILES
from edgesim.tables.table_reading import read_event_log
from edgesim.verification.check_result import FAILED, PASSED
from edgesim.verification.verify import check_run

FADING = ["network.channel.fading={kind: rayleigh, coherence: 2 ms}", "allocation.rate=quantile"]
EDGES = [
    "network.channel.path_loss={model: log-distance, reference_loss: 38.5 dB, exponent: 3.5}",
    "devices.0.position={disc: 40 m}",
    "budget.latency_threshold=80 ms",
    "learning.method={name: pruning-only}",
    "tiers={edges: [{position: [0 m, 0 m]}, {position: [50 m, 0 m]}], "
    "backhaul: {rate: 100 Mbit/s, delay: 5 ms, energy_per_bit: 20 nJ}}",
]


@pytest.fixture
def run(static_scenario, tmp_path):
    def make(*changes):
        edgesim.simulate(edgesim.load(static_scenario, changes), out=tmp_path / "run")
        return tmp_path / "run"

    return make


def change(folder, table, column):
    """A number of a table is another one, and its file has a new digest."""
    name = FILES[table]
    changed = read_event_log(folder, [table])[table]
    changed.loc[1, column] *= 1.01
    write = changed.to_csv if name.endswith(".csv") else changed.to_parquet
    write(folder / name, index=False)
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    lines = (folder / SUMS).read_text().splitlines()
    changed = [f"{digest}  {name}" if line.endswith(f"  {name}") else line for line in lines]
    (folder / SUMS).write_text("\n".join(changed) + "\n")


@pytest.mark.parametrize(
    ("changes", "table", "column", "others"),
    [
        (FADING, "upload_forecasts", "planned_bps", set()),
        (FADING, "upload_forecasts", "late_probability", {"summary"}),
        (EDGES, "backhaul", "end_s", set()),
        (EDGES, "backhaul", "bits", {"rounds"}),
        (EDGES, "backhaul", "energy_j", {"rounds"}),
    ],
)
def test_a_changed_number_is_not_that_of_the_log_nor_of_what_follows(
    run, changes, table, column, others
):
    folder = run(*changes)
    before = {check.name: check.outcome for check in check_run(folder, None, False)}
    assert FAILED not in before.values()
    change(folder, table, column)
    after = {check.name: check.outcome for check in check_run(folder, None, False)}
    assert after["files"] == after["tables"] == PASSED
    wrong = {name for name, outcome in after.items() if outcome == FAILED}
    assert wrong == {"log and tables", *others}
