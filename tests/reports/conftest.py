"""Small run folders whose numbers can be worked out by hand."""

from __future__ import annotations

import functools
import itertools
import json
from pathlib import Path

import pandas as pd
import pytest

from edgesim.records.run_tables.table_columns import MEASURES, SCORES
from tests.conftest import FEW

NAN = float("nan")
THRESHOLD_S = 0.025
NASTY = "<script>alert(1)</script> & 'x'"


def round_rows(
    latency_s, accuracy, bits_up=10e6, bits_down=20e6, energy_j=0.5, **more
) -> pd.DataFrame:
    """Rounds of two devices; every round sends and spends the same."""
    count = len(latency_s)
    table = pd.DataFrame({"round": range(count), "latency_s": latency_s, "accuracy": accuracy})
    table["time_s"] = table["latency_s"].cumsum()
    table["loss"] = 1 - table["accuracy"]
    table["accuracy_std"] = table["accuracy"].where(table["accuracy"].isna(), 0.1)
    late = [2 if value > THRESHOLD_S * 1.000001 else 0 for value in latency_s]
    fixed = {"selected": 2, "arrived": 2, "failed": 0, "infeasible": 0}
    fixed |= {"rho_mean": 0.5, "rho_max": 0.75, "flops": 0.0}
    money = {"bits_up": bits_up, "bits_down": bits_down, "cycles": 1e6}
    money |= {"energy_j": energy_j, "solver_residual": 1e-12}
    return table.assign(late=late, **fixed, **money, **more)


def device_rows(rounds: pd.DataFrame, rho=(0.25, 0.75)) -> pd.DataFrame:
    """Device 0 has 40 % of the band, device 1 the rest; device 0 takes half of the latency."""
    rows = []
    for row in rounds.itertuples():
        for k in (0, 1):
            finish_s = row.latency_s * (1 + k) / 2
            status = "late" if row.late else "arrived"
            rows.append(
                (
                    row.round,
                    k,
                    status,
                    (0.4, 0.6)[k],
                    rho[k],
                    1e8,
                    0.0,
                    finish_s / 4,
                    finish_s * 3 / 4,
                    finish_s,
                )
            )
    names = [
        *("round", "device", "status", "share", "rho", "rate_bps"),
        *("download_s", "compute_s", "upload_s", "finish_s"),
    ]
    money = {"bits_up": 5e6, "bits_down": 10e6, "flops": 0.0, "cycles": 5e5, "energy_j": 0.25}
    return pd.DataFrame(rows, columns=names).assign(**money)


def span_rows(rounds: pd.DataFrame) -> pd.DataFrame:
    """A quarter of each device's time computes (0.05 J), the rest uploads (0.2 J)."""
    rows = []
    for row in rounds.itertuples():
        start = row.time_s - row.latency_s
        for k in (0, 1):
            finish_s = row.latency_s * (1 + k) / 2
            middle, end = start + finish_s / 4, start + finish_s
            rows.append((row.round, k, "download", start, start, 10e6, 0.0, 0.0))
            rows.append((row.round, k, "train", start, middle, 0.0, 5e5, 0.05))
            rows.append((row.round, k, "upload", middle, end, 5e6, 0.0, 0.2))
    return pd.DataFrame(
        rows, columns=["round", "device", "phase", "start_s", "end_s", "bits", "cycles", "energy_j"]
    )


def scenario_text(
    name: str, scheme: str, method: str, solver: str, seed: int, bandwidth: str, extra: str = "",
    learning: dict | None = None,
) -> str:  # fmt: skip
    more = "".join(f", {key}: {value}" for key, value in (learning or {}).items())
    return "\n".join(
        [
            f"name: {name}",
            f"scheme: {json.dumps(scheme)}",
            f"seed: {seed}",
            f"network: {{bandwidth: {bandwidth}}}",
            f"allocation: {{solver: {solver}}}",
            f"learning: {{method: {{name: {method}}}{more}}}",
            extra,
            "provenance: {python: 3.11.9, git: abc}\n",
        ]
    )


@functools.cache
def stored_tables(latency_s: tuple, accuracy: tuple, rho: tuple, money: tuple) -> dict[str, bytes]:
    """The tables of a run by their file names: most tests have the same ones."""
    rounds = round_rows(list(latency_s), list(accuracy), **dict(money))
    return {
        "rounds.csv": rounds.to_csv(index=False).encode(),
        "device_rounds.parquet": device_rows(rounds, rho).to_parquet(),
        "spans.parquet": span_rows(rounds).to_parquet(),
        "scores.parquet": pd.DataFrame(columns=[*SCORES]).astype(SCORES).to_parquet(),
        "measures.csv": pd.DataFrame(columns=[*MEASURES]).to_csv(index=False).encode(),
    }


def finished_run(
    folder: Path, scheme="joint", method="liu", solver="kkt", seed=0, name="demo",
    latency_s=(0.025,) * 4, accuracy=(NAN, 0.5, NAN, 0.9), targets=("0.8", "0.95"),
    threshold_s=THRESHOLD_S, bandwidth="200 MHz",
    warnings=(), rho=(0.25, 0.75), extra="", learning=None, **money,
) -> Path:  # fmt: skip
    """A finished run as `edgesim run` leaves it."""
    folder.mkdir(parents=True)
    each = [tuple(column) for column in (latency_s, accuracy, rho)]
    for table, content in stored_tables(*each, tuple(money.items())).items():
        (folder / table).write_bytes(content)
    text = scenario_text(name, scheme, method, solver, seed, bandwidth, extra, learning)
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
    summary = {"scenario": name, "scheme": scheme, "method": method, "solver": solver, "seed": seed}
    summary |= {"rounds": len(latency_s), "devices": 2, "latency_threshold_s": threshold_s}
    summary |= {"targets": dict.fromkeys(targets), "warnings": list(warnings)}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    partition = {"labels": ["cat", "dog", "eel"], "counts": [[30, 0, 5], [0, 20, 0]]}
    (folder / "partition.json").write_text(json.dumps(partition), encoding="utf-8")
    devices = "device,distance_m,path_gain_db,tx_power_w,cpu_hz,rate_bps,samples\n"
    devices += "0,,-100.0,0.63,3e9,1.5e8,35\n1,,-103.0,0.63,1e9,1e8,20\n"
    (folder / "devices.csv").write_text(devices, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def write_run():
    """write_run(folder, scheme=..., ...) -> folder."""
    return finished_run


def finished_sweep(
    sweep: Path, thresholds=("15 ms", "30 ms"), bands=("10 MHz", "20 MHz", "40 MHz"), seeds=(0, 1)
) -> Path:
    """A sweep's folder; liu's latency is its threshold, fedavg's ten times it.

    Accuracy: band / 100 MHz + seed / 100 (+ 0.1 for liu), so that means over seeds are known.
    """
    listed = []
    for method in ("liu", "fedavg"):
        for threshold, band, seed in itertools.product(thresholds, bands, seeds):
            name = f"{method}-{threshold}-{band}-{seed}".replace(" ", "")
            limit_s = float(threshold.split()[0]) / 1e3
            final = float(band.split()[0]) / 100 + seed / 100 + (0.1 if method == "liu" else 0.0)
            finished_run(
                sweep / "points" / name, scheme=method, method=method, seed=seed, bandwidth=band,
                latency_s=(limit_s * (1 if method == "liu" else 10),) * 2, accuracy=(0.05, final),
                threshold_s=limit_s, extra=f"budget: {{latency_threshold: {threshold}}}",
                targets=("0.2",),
            )  # fmt: skip
            limit = threshold.replace(" ", "")
            values = {"budget.latency_threshold": limit, "network.bandwidth": band}
            listed.append(
                {"folder": f"points/{name}", "label": method, "values": values, "seed": seed}
            )
    points = [{**point, "status": "done", "error": None} for point in listed]
    content = {"name": "demo", "linked": [], "points": points}
    (sweep / "sweep.json").write_text(json.dumps(content), encoding="utf-8")
    return sweep


@pytest.fixture
def write_sweep(tmp_path):
    """write_sweep(thresholds=..., bands=..., seeds=...) -> folder."""
    return functools.partial(finished_sweep, tmp_path / "sweep")


@pytest.fixture(scope="session")
def swept_folder(tmp_path_factory):
    """Two methods, two thresholds, three bands, two seeds; only to be read."""
    return finished_sweep(tmp_path_factory.mktemp("swept") / "sweep")


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory):
    """Two finished runs, one with a label to escape, and an unfinished one; only to be read."""
    runs = tmp_path_factory.mktemp("two") / "runs"
    finished_run(runs / "a", scheme="joint", warnings=["device 1 <b>fades</b>"])
    finished_run(
        runs / "b",
        scheme=NASTY,
        method="fedavg",
        solver="equal",
        latency_s=(0.03, 0.05, 0.04, 0.04),
    )
    unfinished = finished_run(runs / "c", seed=5)
    (unfinished / "summary.json").unlink()
    return runs


@pytest.fixture(scope="session")
def report(two_runs, tmp_path_factory) -> Path:
    """A whole report of them, made once; only to be read."""
    from reports.html_page import write_report

    return write_report([two_runs], tmp_path_factory.mktemp("report") / "out").parent


@pytest.fixture(scope="session")
def swept_schemes(swept_folder):
    """The twelve schemes of that sweep."""
    from reports.run_data.given_runs import schemes_of

    return schemes_of(swept_folder)


@pytest.fixture(scope="session")
def two_schemes(two_runs):
    """The schemes of the two finished runs."""
    from reports.run_data.scheme_grouping import load_schemes

    found = {scheme.label: scheme for scheme in load_schemes([two_runs / "a", two_runs / "b"])}
    return [found["joint"], found[NASTY]]


@pytest.fixture(scope="session")
def only_figures():
    """only_figures("cdf", ..., style=...): options of reports with these figures, to be quick."""
    from reports.report_options import options_from

    def chosen(*names, **more):
        return options_from({"figures": list(names), **more})

    return chosen


@pytest.fixture
def run(tmp_path, write_run):
    """The folder of one finished run."""
    return write_run(tmp_path / "runs" / "a")


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory) -> Path:
    """<band>MHz-s<seed>: four runs of two rounds without training, made once."""
    import edgesim

    place = tmp_path_factory.mktemp("real")
    text = FEW.replace("name: few\nrounds: 3", "name: tiny\nrounds: 2")
    (place / "tiny.yaml").write_text(text, encoding="utf-8")
    for band, seed in itertools.product((5, 10), (0, 1)):
        scenario = edgesim.load(place / "tiny.yaml", [f"network.bandwidth={band} MHz"])
        edgesim.simulate(scenario, seed=seed, out=place / "runs" / f"{band}MHz-s{seed}")
    return place / "runs"


@pytest.fixture
def scheme_of(tmp_path, write_run):
    """scheme_of(scheme=..., ...) -> the Scheme of one such run."""
    from reports.run_data.scheme_grouping import load_schemes

    made = []

    def make(**given):
        made.append(write_run(tmp_path / f"run{len(made)}", **given))
        return load_schemes([made[-1]])[0]

    return make


JOBS = {  # of devices 0 and 1 of three, 0.75 s each
    "status": ["arrived"] * 3 + ["discarded", "arrived", "cancelled", "unfinished", "arrived"],
    "version_in": [0, 0, 1, 1, 3, 3, 4, 3],
    "version_out": [0, 1, 2, -1, 3, -1, -1, -1],
    "staleness": [0, 1, 1, 2, 0, 0, 0, 0],
    "dispatched_s": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.25],
    "energy_j": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
}


@pytest.fixture
def overlapping(scheme_of):
    """Jobs of every fate that overlap, and a version of the model each second."""
    scheme = scheme_of(scheme="clocked", latency_s=(1.0,) * 4, threshold_s=None)
    table = pd.DataFrame(JOBS).assign(round=0, device=[0, 1] * 4, job=range(8), share=0.5, rho=0.0)
    table["bits_up"] = table["bits_down"] = table["energy_j"] * 1e7
    plain = table[["round", "device", "job"]].assign(bits=0.0, cycles=0.0, energy_j=0.0)
    start, middle = table["dispatched_s"], table["dispatched_s"] + 0.5
    train = plain.assign(phase="train", start_s=start, end_s=middle)
    upload = plain.assign(phase="upload", start_s=middle, end_s=middle + 0.25)
    tables = {"device_rounds": table, "spans": pd.concat([train, upload])}
    for name, value in (tables | {"rounds": scheme.first.rounds.assign(in_flight=2)}).items():
        object.__setattr__(scheme.first, name, value)
    scheme.first.summary["devices"] = 3
    return scheme
