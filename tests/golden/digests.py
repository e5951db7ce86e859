"""From what a run leaves in its folder to digests that no path, clock or file format enters."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.parquet
import torch
from typer.testing import CliRunner

from edgesim import load, simulate
from edgesim.cli.app import app
from reports.figure_catalog import report_figures
from reports.run_data.given_runs import schemes_of
from tests.golden.cases import Case
from tests.golden.scenario_texts import EIGHT, PROCESSORS, TEXTS

RECORDS = Path(__file__).with_name("records")  # one file a kind of machine
COMMAND_LINE = "command-line"
PLAIN = (
    "rounds.csv",
    "measures.csv",
    "devices.csv",
    "partition.json",
    "model.safetensors",
    "trace.json",
)
PROSE = ("warnings", "training")  # keys of summary.json that say how, in words
SWEPT = "budget.latency_threshold:learning.method.lr=40ms:0.02,60ms:0.05"


def read_records() -> dict[Path, dict]:
    """All records, by their files."""
    files = sorted(RECORDS.glob("*.json"))
    return {file: json.loads(file.read_text(encoding="utf-8")) for file in files}


def differences(record: dict, here: dict) -> dict[str, list[str]]:
    """What this machine computes in another way than that of a record, by kind of run."""
    return {
        kind: [
            f"{name} is {here[kind].get(name)}, recorded with {value}"
            for name, value in record["arithmetic"][kind].items()
            if here[kind].get(name) != value
        ]
        for kind in ("counting", "training")
    }


def nearest_record(records: dict[Path, dict], here: dict) -> Path:
    """The record whose arithmetic differs least from that of this machine."""

    def distance(file: Path) -> tuple[int, int]:
        apart = differences(records[file], here)
        return len(apart["counting"]), len(apart["training"])

    return min(records, key=distance)


def sha(data: bytes) -> str:
    """The digest that is kept: 24 hexadecimal digits of sha256."""
    return hashlib.sha256(data).hexdigest()[:24]


def canonical(content: object) -> bytes:
    """JSON with sorted keys; floats as the shortest text that reads back to the same number."""
    return json.dumps(content, sort_keys=True).encode()


def table_digest(path: Path) -> str:
    """Of a Parquet file's content: column names, kinds, raw bytes of numbers, texts as JSON."""
    table, parts = pyarrow.parquet.read_table(path, use_threads=False), []
    for name in table.column_names:
        values = table[name].to_numpy()
        number = values.dtype.kind in "biuf"
        kind = values.dtype.str if number else "text"
        texts = [None if value is None or value != value else str(value) for value in values]
        raw = np.ascontiguousarray(values).tobytes() if number else canonical(texts)
        parts.append(f"{name} {kind} {sha(raw)}")
    return sha("\n".join(parts).encode())


def summary_digest(path: Path) -> str:
    """Of summary.json without what it says in words."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return sha(canonical({key: value for key, value in content.items() if key not in PROSE}))


def of_run(folder: Path) -> dict[str, str]:
    """Table -> digest of one run's folder."""
    found = {name: sha((folder / name).read_bytes()) for name in PLAIN if (folder / name).exists()}
    found |= {path.name: table_digest(path) for path in sorted(folder.glob("*.parquet"))}
    return found | {"summary.json": summary_digest(folder / "summary.json")}


def of_case(case: Case, folder: Path) -> dict[str, str]:
    """Run a case within an empty folder: table -> digest."""
    path = case.source
    if path in TEXTS:
        (folder / "clocks.csv").write_text(PROCESSORS, encoding="utf-8")
        path = folder / f"{case.source}.yaml"
        path.write_text(TEXTS[case.source], encoding="utf-8")
    scenario = load(path, list(case.changes), label=case.label)
    return of_run(simulate(scenario, out=folder / "run").folder)


def of_command_line(folder: Path) -> dict[str, str]:
    """A sweep of two keys and two seeds, its report, and the report of one point."""
    (folder / "eight.yaml").write_text(EIGHT, encoding="utf-8")
    sweep = ("sweep", "eight.yaml", SWEPT, "rounds=2", "--seeds", "0-1", "--workers", "1")
    _command(folder, *sweep, "--quiet", "--out", "swept")
    plan = json.loads((folder / "swept" / "sweep.json").read_text(encoding="utf-8"))
    points = [folder / "swept" / point["folder"] for point in plan["points"]]
    reported = {"of-sweep": "swept", "of-run": str(points[0].relative_to(folder))}
    for report, given in reported.items():
        _command(folder, "report", given, "figures=cdf", "--out", report)
    found = {"sweep.json": sha(canonical(_results(plan)))}
    for i, point in enumerate(points):
        found |= {f"point {i}: {name}": digest for name, digest in of_run(point).items()}
    for report, given in reported.items():
        tables = [path for path in (folder / report).rglob("*") if path.suffix in (".csv", ".tex")]
        found |= {str(path.relative_to(folder)): sha(path.read_bytes()) for path in tables}
        found |= {f"{report}/figures/{name}": sha(text) for name, text in _numbers(folder / given)}
    return found


def _numbers(given: Path) -> Iterator[tuple[str, bytes]]:
    """Files of numbers beside the figures of a report, whose drawings are not kept."""
    for figure in report_figures(schemes_of(given))[0]:
        yield f"{figure.name}.csv", figure.table().csv().encode()


def _results(plan: dict) -> dict:
    """sweep.json without the path and the folders, which the code's digest names."""
    points = [{key: row[key] for key in row if key != "folder"} for row in plan["points"]]
    return {**{key: plan[key] for key in ("name", "axes", "linked")}, "points": points}


def _command(folder: Path, *words: str) -> None:
    with chdir(folder):
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output


def arithmetic() -> dict[str, dict[str, str]]:
    """What the bytes depend on: of runs that only count, and of those that train as well."""
    libraries = ("numpy", "scipy", "cvxpy", "clarabel", "highspy")
    counting = {name: version(name) for name in libraries} | {"probe": _numpy_probe()}
    training = {
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("torch", "scikit-learn")},
        "MKL_CBWR": os.environ.get("MKL_CBWR", ""),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "probe": _torch_probe(),
    }
    return {"counting": counting, "training": training}


def processor() -> str:
    """A short name of this kind of machine, for the file of its record."""
    made_by = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = platform.machine()
    maker = next((short for word, short in made_by.items() if word in text), platform.machine())
    return f"{maker}-{torch.backends.cpu.get_cpu_capability().lower()}"


def _numpy_probe() -> str:
    """Elementary functions and a linear system in float64."""
    x = np.random.default_rng(0).uniform(0.1, 9.0, (40, 40))
    parts = [np.exp(x), np.log(x), np.log2(x), np.log1p(x), np.power(x, 0.3), np.sin(x)]
    return sha(b"".join(part.tobytes() for part in [*parts, x @ x, np.linalg.solve(x, x[0])]))


def _torch_probe() -> str:
    """A convolution and a matrix product in float32, forward and backward, by one thread."""
    rng = np.random.default_rng(0)
    shapes = ((8, 3, 12, 12), (6, 3, 5, 5), (6 * 64, 10))
    x, kernel, matrix = (torch.tensor(rng.normal(size=s), dtype=torch.float32) for s in shapes)
    kernel.requires_grad_(), matrix.requires_grad_()
    hidden = torch.relu(torch.nn.functional.conv2d(x, kernel)).flatten(1)
    loss = torch.log_softmax(hidden @ matrix, 1)[:, 0].mean()
    loss.backward()
    parts = (loss.detach(), kernel.grad, matrix.grad)
    return sha(b"".join(part.numpy().tobytes() for part in parts))
