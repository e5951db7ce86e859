"""One self-contained HTML page from any set of runs, with its figures and tables as files beside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from reports import curves, figures, findings, measures, tables, timeline
from reports.load import ReportError, Run, find_runs
from reports.schemes import Scheme, load_schemes
from reports.style import RHO, settings

METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
MOST_ROWS = 100  # of the devices' table on the page; the CSV has all


@dataclass(frozen=True)
class Plate:
    """A figure on the page: its file name, its title, its caption, and the picture as a data URI."""

    name: str
    title: str
    caption: str
    picture: str


def write_report(dirs: Sequence[Path], out: Path) -> Path:
    """Write OUT/index.html, OUT/figures/*.{pdf,png,svg} and OUT/tables/*.{csv,tex}; return the page.

    Args:
        dirs: run folders, or folders that contain some.     out: the report's folder, made where it is missing.
    Raises:
        ReportError: no finished run there, a broken or unfinished run, runs that do not go together, or no room.
    """
    folders, unfinished = find_runs([Path(place) for place in dirs])
    schemes = load_schemes(folders)
    out = Path(out)
    try:
        for part in ("figures", "tables"):
            (out / part).mkdir(parents=True, exist_ok=True)
        shown = _write_tables(schemes, out / "tables")
        plates = _plates(schemes, out / "figures")
        page = out / "index.html"
        page.write_text(_render(schemes, shown, plates, unfinished), encoding="utf-8")
    except OSError as error:
        raise ReportError(f"The report cannot be written to {out}: {error.strerror or error}.") from None
    return page


def _write_tables(schemes: list[Scheme], folder: Path) -> dict[str, tables.Table]:
    made = (
        tables.scheme_table(schemes),
        tables.cost_table(schemes),
        tables.target_table(schemes),
        tables.device_table(schemes[0].first),
    )
    shown = {table.name: table for table in made if table is not None}
    for name, table in shown.items():
        (folder / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{name}.tex").write_text(table.latex(), encoding="utf-8")
    return shown


def _plates(schemes: list[Scheme], folder: Path) -> list[Plate]:
    plates = []
    for name, title, draw, caption in (
        ("accuracy", "Accuracy over simulated time and over rounds", curves.accuracy, _accuracy_caption(schemes)),
        ("spending", "Accuracy over bits and over joules", curves.spending, _spending_caption()),
        ("latency", "Latency per round", figures.latency, _latency_caption(schemes)),
        ("devices", "Pruning ratio and band share per device", figures.devices, _devices_caption(schemes)),
        ("timeline", "Timeline of one round", timeline.timeline, _timeline_caption(schemes)),
        ("costs", "Payload and energy", figures.costs, _costs_caption(schemes)),
        ("partition", "Who holds what", timeline.partition, _partition_caption(schemes)),
        ("loss", "Loss over simulated time and over rounds", curves.loss, "Test loss, mean over devices."),
    ):
        svg = write_figure(draw, schemes, folder, name)
        if svg is not None:
            code = base64.b64encode(svg.encode("utf-8")).decode("ascii")
            plates.append(Plate(name, title, caption, f"data:image/svg+xml;base64,{code}"))
    return plates


def write_figure(draw, schemes: list[Scheme], folder: Path, name: str) -> str | None:
    """Write NAME.pdf, .png and .svg at column width; return the page version as SVG text (None: nothing to draw)."""
    with matplotlib.rc_context(settings(wide=False)):
        figure = draw(schemes, False)
        if figure is None:
            return None
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once; the files differ in nothing but their format
        for kind, metadata in METADATA.items():
            figure.savefig(folder / f"{name}.{kind}", metadata=metadata)
    with matplotlib.rc_context(settings(wide=True)):
        out = io.BytesIO()
        draw(schemes, True).savefig(out, format="svg", metadata=METADATA["svg"])
    return out.getvalue().decode("utf-8")


def _spending_caption() -> str:
    return (
        "The same accuracy against what it took since the first round: bits of all devices, up and down, and joules of "
        "all devices. A curve that lies further left reaches its accuracy for less."
    )


def _accuracy_caption(schemes: list[Scheme]) -> str:
    over = {curve.over for scheme in schemes if (curve := measures.curve(scheme, "accuracy"))}
    band = " Bands: 95 % interval over seeds." if "seeds" in over else ""
    band += " Bars: one standard deviation over devices." if "devices" in over else ""
    return f"Test accuracy of every device's own model on its own test data, mean over devices.{band}"


def _latency_caption(schemes: list[Scheme]) -> str:
    seeds = " The curves show the first seed." if any(len(scheme.runs) > 1 for scheme in schemes) else ""
    return (
        "Simulated time that each global round took: mean (marker) and range over all rounds, and round by round; "
        f"dashed: the latency threshold. Markers are staggered, so that equal lines show all of theirs.{seeds}"
    )


def _devices_caption(schemes: list[Scheme]) -> str:
    return (
        "Mean (marker or line) and range (bar or band) over the rounds in which the device took part, all seeds "
        f"together. {RHO} is the pruned share of the prunable weights; schemes without pruning stay at zero."
    )


def _timeline_caption(schemes: list[Scheme]) -> str:
    g = measures.middle_round(schemes)
    axis = "" if timeline.shares_axis(schemes) else " The panels have different time axes."
    many = any(scheme.first.summary["devices"] > timeline.MOST_DEVICES for scheme in schemes)
    some = f" Shown are {timeline.MOST_DEVICES} devices, among them the last to finish." if many else ""
    return f"Round {g} of the run with the smallest seed.{axis}{some} Phases without a duration are not visible."


def _costs_caption(schemes: list[Scheme]) -> str:
    return "Sums over the devices, per round (means over rounds and seeds). Joules are those of the energy ledger."


def _partition_caption(schemes: list[Scheme]) -> str:
    found = timeline.partitions(schemes)
    more = f" {len(found) - timeline.MOST_PARTITIONS} further partitions are not shown." if len(found) > 4 else ""
    same = " All schemes have the same." if len(found) == 1 and len(schemes) > 1 else ""
    return f"Training samples per device and label, smallest seed.{same}{more}"


def _render(schemes: list[Scheme], shown: dict[str, tables.Table], plates: list[Plate], unfinished: list[Path]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    here = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=here, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    aiming, others = findings.threshold_notes(schemes)
    return environment.get_template("page.html.j2").render(
        title=", ".join(dict.fromkeys(str(scheme.first.summary["scenario"]) for scheme in schemes)),
        overview=findings.overview(schemes),
        orders=findings.orders(schemes),
        claims=findings.compare(schemes),
        reference=findings.reference_note(schemes),
        aiming=aiming,
        others=others,
        unfinished=sorted(folder.name for folder in unfinished),
        tables=shown,
        most_rows=MOST_ROWS,
        plates=plates,
        schemes=schemes,
        warnings=_warnings(schemes),
        provenance=_provenance(schemes),
    )


def _warnings(schemes: list[Scheme]) -> list[tuple[str, str]]:
    """(whose, text): every warning once per scheme, with the seeds that had it."""
    said: dict[tuple[str, str], list[int]] = {}
    for scheme in schemes:
        for run in scheme.runs:
            for text in run.summary.get("warnings", ()):
                said.setdefault((scheme.label, str(text)), []).append(run.seed)
    return [(f"{label}, seed {', '.join(map(str, seeds))}", text) for (label, text), seeds in said.items()]


def _provenance(schemes: list[Scheme]) -> list[tuple[str, str]]:
    """(what, version); several values where the runs were not made alike."""
    runs = [run for scheme in schemes for run in scheme.runs]
    flats = [_flat_provenance(run) for run in runs]
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return [(key, " / ".join(dict.fromkeys(flat.get(key, "unknown") for flat in flats))) for key in keys]


def _flat_provenance(run: Run) -> dict[str, str]:
    def walk(value: Any, prefix: str) -> dict[str, str]:
        if not isinstance(value, dict):
            return {prefix: str(value)}
        return {k: v for key, part in value.items() for k, v in walk(part, f"{prefix}.{key}".lstrip(".")).items()}

    return walk(run.scenario.get("provenance") or {}, "")
