"""docs/tables.md has the columns of every table, with their types, and no others."""

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
