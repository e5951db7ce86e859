"""docs/tables.md has the columns of every table, with types and meanings, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import edgesim
from edgesim.records.run_tables.table_columns import SCHEMAS
from edgesim.records.run_tables.table_files import FILES, ONLY_WITH_ROWS
from edgesim.runs.artifacts import devices_csv, partition
from edgesim.runs.setup import set_up

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
TYPES = {int: "whole number", float: "number", str: "text"}
KINDS = {"whole number": int, "number": (int, float, type(None)), "text": str}
KINDS |= {"mapping": dict, "list": list}
UNITS = {"s": "s", "j": "J", "hz": "Hz", "bps": "bit/s", "w": "W", "m": "m", "db": "dB"}
SCENARIO = """
name: tiny
rounds: 1
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 90 dB}}}
devices: [{count: 2, tx_power: 23 dBm, cpu: {frequency: 1 GHz, flops_per_cycle: 4}}]
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""
SLOW = ("rounds=4", "devices.0.cpu={frequency: 1 GHz, cycles_per_weight: 1000}")
# a device whose battery ends within round 21, by fading that the plan does not count with
BATTERY = (
    "rounds=23",
    "devices.0.count=1",
    "devices.0.tx_power=33 dBm",
    "devices.0.idle_power=10 mW",
    "devices.0.radio={efficiency: 0.1, circuit_power: 100 mW}",
    "devices.0.battery={capacity: 1.01 J, start: 0.9, resume: 0.6, charging: {power: 0.2 W}}",
    "network.channel={path_loss: {model: constant, loss: 100 dB}, "
    "fading: {kind: rayleigh, coherence: 3 ms}}",
)


def documented() -> dict[str, dict[str, tuple[str, str, str]]]:
    """File -> column -> (type, unit, meaning)."""
    found: dict[str, dict[str, tuple[str, str, str]]] = {}
    for name, text in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S):
        rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) ?\| (.*?) \|$", text, re.M)
        found[name] = {
            column: (kind, unit.strip(), meaning) for column, kind, unit, meaning in rows
        }
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    (place / "tiny.yaml").write_text(SCENARIO)
    edgesim.simulate(edgesim.load(place / "tiny.yaml"), out=place / "run")
    return place / "run"


@pytest.mark.parametrize("table", FILES)
def test_every_table_of_the_schema_is_described(table):
    columns = {name: kind for name, (kind, _, _) in documented()[FILES[table]].items()}
    assert list(columns.items()) == [(name, TYPES[kind]) for name, kind in SCHEMAS[table].items()]


def test_units_are_those_that_names_end_in_and_every_column_has_a_meaning():
    for file, columns in documented().items():
        for name, (_, unit, meaning) in columns.items():
            ending = name.rpartition("_")[2]
            if "_" in name and ending in UNITS and not name.startswith("pruning_per"):
                assert unit == UNITS[ending], (file, name)
            assert meaning


def test_devices_summary_and_timing_are_those_of_a_run(folder):
    pages = documented()
    assert list(pd.read_csv(folder / "devices.csv").columns) == list(pages["devices.csv"])
    for file in ("summary.json", "timing.json"):
        content = json.loads((folder / file).read_text())
        assert set(content) == set(pages[file]), file
        for key, (kind, _, _) in pages[file].items():
            assert isinstance(content[key], KINDS[kind]), (file, key)


@pytest.mark.parametrize(
    ("name", "label"), [("urban-macro", "now"), ("hierarchy", "kappa_2 5"), ("network", None)]
)
def test_further_columns_of_devices_are_described_above_the_table(name, label):
    text = PAGE.read_text(encoding="utf-8").partition("## devices.csv")[2].partition("\n## ")[0]
    file = PAGE.parents[1] / "scenarios" / f"{name}.yaml"
    scenario = edgesim.load(file, ["learning.dataset=none", "learning.partition=none"], label)
    columns = devices_csv(set_up(scenario)).partition("\n")[0].split(",")
    assert [column for column in columns if f"`{column}`" not in text] == []


def test_the_table_of_a_sweep_is_described_with_a_target_in_place_of_A(folder):
    table = edgesim.load_run(folder).points.drop(columns=["scheme", "seed"])
    columns = documented()["sweep.parquet"]
    names = [name.replace("_A", "_0.8") for name in columns if "_A" in name]
    names += [name.replace("_A", "_0.9") for name in columns if "_A" in name]
    assert list(table.columns) == [*(name for name in columns if "_A" not in name), *names]
    kinds = {"Int64": "whole number", "float64": "number"}
    for name, dtype in table.dtypes.items():
        kind = columns[re.sub(r"_0\.[89]", "_A", str(name))][0]
        assert kinds.get(str(dtype), "text") == kind, name


def test_every_table_of_the_page_is_one_that_a_run_writes(folder):
    there = {path.name for path in folder.iterdir()} | {FILES[name] for name in ONLY_WITH_ROWS}
    there |= {"sweep.parquet", "partition.json"}
    assert set(documented()) <= there


def test_the_counts_of_labels_are_described_as_a_run_with_data_writes_them():
    scenario = edgesim.load(PAGE.parents[1] / "scenarios" / "demo.yaml", label="fedavg")
    content, keys = partition(set_up(scenario).task.data), documented()["partition.json"]
    assert list(content) == list(keys)
    assert all(isinstance(content[key], KINDS[kind]) for key, (kind, _, _) in keys.items())
    assert {len(row) for row in content["counts"]} == {len(content["labels"])} == {10}


# --- what the page says of columns, by tiny runs in which it matters ----------------------------


@pytest.fixture
def play(tmp_path):
    def play(*changes: str):
        (tmp_path / "tiny.yaml").write_text(SCENARIO)
        return edgesim.simulate(edgesim.load(tmp_path / "tiny.yaml", (*SLOW, *changes)))

    return play


def meaning(file: str, column: str) -> str:
    return documented()[file][column][2]


def test_finish_counts_from_the_end_of_a_wait_of_the_server(play):
    run = play(*BATTERY)
    waited = run.rounds.iloc[22]
    (row,) = run.device_rounds[run.device_rounds["round"] == 22].to_dict("records")
    begun_s = run.spans[run.spans["round"] == 22].query("phase == 'download'")["start_s"].min()
    assert run.rounds["failed"][21] == 1 and row["status"] == "arrived"
    assert row["finish_s"] == pytest.approx(waited["time_s"] - begun_s)
    assert row["finish_s"] < 0.1 * waited["latency_s"]
    assert "where the server waited, from the end of its wait" in meaning(
        "device_rounds.parquet", "finish_s"
    )


def test_devices_without_energy_for_a_job_are_infeasible_also_without_a_threshold(play):
    run = play(*BATTERY, "rounds=9", "devices.0.battery.start=0.2")
    assert run.summary["latency_threshold_s"] is None
    assert run.rounds["infeasible"].sum() > 0
    assert "their batteries are too weak" in meaning("rounds.csv", "infeasible")


def test_what_the_server_loses_is_discarded(play):
    run = play("rounds=3", "server={up: 15 ms, repair: 10 ms}")
    lost = run.device_rounds.query("status == 'discarded'")
    assert len(lost) == run.rounds["discarded"].sum() > 0
    assert (lost["staleness"] == 0).all() and run.rounds["server_failures"].sum() > 0
    assert "the server lost" in meaning("rounds.csv", "discarded")


def test_versions_of_edges_are_their_own_rounds(play):
    tiers = "{edges: [{}], association: strongest, backhaul: {rate: 1 Mbit/s, delay: 50 ms}"
    run = play(
        "rounds=2",
        "devices.0.failure_rate=0.01 Hz",
        "devices.0.on_failure=resume",
        f"tiers={tiers}, local_rounds: 3}}",
    )
    rows = run.device_rounds
    assert rows["version_in"].tolist() == (3 * rows["round"] + rows["edge_round"]).tolist()
    assert (rows["version_out"] == rows["version_in"] + 1).all()
    for column in ("version_in", "version_out"):
        assert "kappa_2 a round" in meaning("device_rounds.parquet", column)


def test_the_last_version_has_nobody_in_flight_and_may_hold_uploads_that_have_a_row(play):
    run = play(
        "rounds=5", "devices.0.count=3", "clock={mode: buffered, buffer: 2, slot: until_used}"
    )
    handed_out, ended = run.rounds["dispatched"].cumsum(), run.rounds["selected"].cumsum()
    (*_, last) = run.rounds.to_dict("records")
    open_jobs = (run.rounds["in_flight"] + run.rounds["held"])[:-1]
    assert (handed_out - ended)[:-1].tolist() == open_jobs.tolist()
    assert handed_out.iloc[-1] == ended.iloc[-1]
    unused = run.device_rounds.query("status == 'arrived' and version_out == -1")
    assert last["in_flight"] == 0 and last["held"] == len(unused) > 0
    assert (unused["round"] == last["round"]).all()
    assert "0 in the last row" in meaning("rounds.csv", "in_flight")
    assert "in the last row" in meaning("rounds.csv", "held")


def test_forecasts_are_of_the_last_plan_of_a_version_where_a_server_fails(play):
    run = play(
        "rounds=4",
        "network.channel.fading={kind: rayleigh, coherence: 3 ms}",
        "budget.latency_threshold=60 ms",
        "allocation={solver: kkt, rate: quantile}",
        "learning.method={name: pruning-only, local_steps: 5, warmup_steps: 1, lr: 0.1}",
        "server={up: 60 ms, repair: 10 ms}",
    )
    lost = run.device_rounds["status"] == "discarded"
    assert lost.any() and len(run.upload_forecasts) == (~lost).sum()
    text = PAGE.read_text(encoding="utf-8").partition("## upload_forecasts")[2].partition("\n| ")[0]
    assert "the last plan of the round" in " ".join(text.split())


@pytest.mark.parametrize(
    ("changes", "samples"), [((), 20), (("learning.samples_per_device=7",), 7)]
)
def test_samples_without_a_data_set_are_those_that_the_scenario_counts(tmp_path, changes, samples):
    (tmp_path / "tiny.yaml").write_text(SCENARIO)
    edgesim.simulate(edgesim.load(tmp_path / "tiny.yaml", changes), out=tmp_path / "run")
    assert edgesim.load_run(tmp_path / "run").devices["samples"].tolist() == [samples] * 2
    assert "`learning.samples_per_device`, or one batch" in meaning("devices.csv", "samples")


def test_a_battery_that_ends_within_a_job_counts_as_a_failure(play):
    run = play(*BATTERY, "rounds=22")
    assert run.rounds["failed"].tolist()[21] == 1
    text = meaning("rounds.csv", "failed")
    assert "battery" in text and "link failed" in text
