"""What the command line shows: progress of a run, and tables. All text of users is escaped or plain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

WIDE = 160  # columns of a table where the output is no terminal
NARROW = 100  # columns of a terminal where the least important ones are left out
PLAIN_LINES = 10  # progress lines of a scheme where the output is no terminal


def console() -> Console:
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=WIDE)


class Progress:
    """Shows a scheme's rounds as they end: a bar on a terminal, a few plain lines elsewhere.

    Called with the events of `edgesim.runs.run.simulate`: kind (start, round, trained, end), round, rounds, time_s,
    accuracy, detours (of the training, with trained).
    """

    def __init__(self, label: str, quiet: bool = False):
        self.label, self.quiet = label, quiet
        self._console = console()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        if self.quiet:
            return
        if event["kind"] == "trained":
            for detour in event["detours"]:
                self._console.print(f"{self.label}: {detour}", markup=False, soft_wrap=True)
        elif self._console.is_terminal:
            self._show_bar(event)
        elif event["kind"] == "round":
            self._show_line(event)

    def _show_bar(self, event: dict[str, Any]) -> None:
        done, total = self._done(event), event.get("rounds")
        if self._bar is None:
            self._bar = _bar(self._console)
            self._bar.start()
            self._task = self._bar.add_task(
                escape(self.label), total=total, completed=done, facts=""
            )
        facts = (
            {"facts": _facts(event)} if event["kind"] == "round" else {}
        )  # the last round's stay to the end
        self._bar.update(self._task, completed=done, total=total, **facts)

    def _show_line(self, event: dict[str, Any]) -> None:
        done, total = self._done(event), event["rounds"]
        if done == total or done % max(1, total // PLAIN_LINES) == 0:
            self._console.print(
                f"{self.label}: round {done}/{total}, {_facts(event)}", markup=False, soft_wrap=True
            )

    @staticmethod
    def _done(event: dict[str, Any]) -> int:
        """Rounds that have ended; rounds are numbered from 0."""
        return (event.get("round") or 0) + (event["kind"] != "start")


def _bar(target: Console) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:20}"),
        BarColumn(),
        TextColumn("round"),
        MofNCompleteColumn(),
    )
    return Bar(
        *columns,
        TextColumn("{task.fields[facts]}"),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=target,
    )


def _facts(event: dict[str, Any]) -> str:
    """``12.5 s simulated, accuracy 0.83``."""
    facts = [f"{event['time_s']:.4g} s simulated"] if _known(event.get("time_s")) else []
    if _known(event.get("accuracy")):
        facts.append(f"accuracy {event['accuracy']:.3f}")
    return ", ".join(facts)


def print_runs(runs: Sequence[tuple[str | None, Any]], quiet: bool = False) -> None:
    """The summary table over schemes, and the folder of each."""
    out = console()
    if runs and not quiet:
        out.print(_summary_table([run.summary for _, run in runs]))
    for label, run in runs:
        name = f"{label}: " if label else ""
        out.print(f"{name}{run.folder}", markup=False, soft_wrap=True)
    for warning in dict.fromkeys(
        text for _, run in runs for text in run.summary.get("warnings", ())
    ):
        out.print(f"warning: {warning}", markup=False, soft_wrap=True)


def _summary_table(summaries: Sequence[dict[str, Any]]) -> Table:
    targets = list(
        dict.fromkeys(target for each in summaries for target in each.get("targets", {}))
    )
    thresholds = dict.fromkeys(
        number(each.get("latency_threshold_s"), ".4g", 1e3) for each in summaries
    )
    limit = f", threshold {' / '.join(thresholds)} ms" if list(thresholds) != ["-"] else ""
    table = _table(f"{summaries[0].get('scenario', '')}{limit}")
    table.add_column("scheme")
    for name in [
        "accuracy",
        "latency ms",
        "late %",
        "sent",
        "energy J",
        *(f"s to {target}" for target in targets),
    ]:
        table.add_column(_two_lines(name), justify="right", no_wrap=True)
    for each in summaries:
        table.add_row(*_summary_row(each, targets))
    return table


def _summary_row(each: dict[str, Any], targets: Sequence[str]) -> list[Text]:
    reached = [(each["targets"].get(target) or {}).get("time_s") for target in targets]
    cells = [
        str(each.get("scheme") or each.get("method") or ""),
        number(each.get("final_accuracy"), ".3f"),
        number(each.get("mean_latency_s"), ".2f", 1e3),
        number(each.get("late_share"), ".1f", 100),
        bits(each.get("bits_up")),
        number(each.get("energy_j"), ".4g"),
        *(number(seconds, ".3g") for seconds in reached),
    ]
    return [Text(cell) for cell in cells]


def print_feasibility(label: str, answer: Any, most: int | None = None) -> None:
    """What each device can reach in a round, and the term that binds."""
    out, rows = console(), answer.rows[:most]
    threshold = (
        f", threshold {number(answer.threshold_ms, '.4g')} ms"
        if _known(answer.threshold_ms)
        else ""
    )
    stages = list(dict.fromkeys(name for row in rows for name in row["stages"]))
    table = _table(f"{label}{threshold}")
    heads = [
        "Mbit/s",
        *(f"{name} ms" for name in stages),
        "upload ms",
        "least ms",
        "binds",
        "share",
        "rho",
        "plan ms",
    ]
    for name in ["device", *(["gain dB"] if out.width > NARROW else []), *heads]:
        table.add_column(_two_lines(name), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_feasibility_row(row, stages, out.width > NARROW))
    out.print(table)
    if len(answer.rows) > len(rows):
        out.print(f"and {len(answer.rows) - len(rows)} devices more (--all shows them)")
    if answer.note and answer.note not in answer.warnings:
        out.print(answer.note, markup=False, soft_wrap=True)
    for warning in answer.warnings:
        out.print(f"warning: {warning}", markup=False, soft_wrap=True)


def _feasibility_row(row: dict[str, Any], stages: Sequence[str], gain: bool) -> list[Text]:
    """The plan is "cannot" where even the work that nothing can shorten takes too long."""
    cells = [
        str(row["device"]),
        *([number(row["gain_db"], ".1f")] if gain else []),
        number(row["rate_mbps"], ".4g"),
        *(number(row["stages"].get(name), ".3g") for name in stages),
        number(row["upload_ms"], ".4g"),
        number(row["least_ms"], ".4g"),
        str(row["binds"]),
        number(row["share"], ".4f"),
        number(row["rho"], ".3f"),
        number(row["planned_ms"], ".4g") if row["feasible"] else "cannot",
    ]
    return [Text(cell) for cell in cells]


def print_keys(infos: Sequence[Any], brief: bool) -> None:
    """Scenario keys: one line each, or all that is known of each."""
    out = console()
    if brief:
        width = max(len(info.key) for info in infos)
        for info in infos:
            default = (
                f"  [{info.default}]" if info.default not in ("see its keys", "required") else ""
            )
            out.print(f"{info.key:{width}}  {info.meaning}{default}", markup=False, soft_wrap=True)
        return
    for info in infos:
        out.print(f"{info.key}: {info.meaning}", markup=False, soft_wrap=True)
        facts = [
            ("unit inside", info.unit),
            ("allowed", info.allowed),
            ("default", info.default),
            ("source", info.source),
        ]
        for name, value in [*facts, ("example", f"{info.key.rpartition('.')[2]}: {info.example}")]:
            if value:
                out.print(f"    {name}: {value}", markup=False, soft_wrap=True)


def print_catalog(rows: Sequence[tuple[str, str, str]]) -> None:
    """Names with one line each and the source."""
    out, width = console(), max((len(name) for name, _, _ in rows), default=0)
    for name, line, source in rows:
        out.print(
            f"{name:{width}}  {line}{f' ({source})' if source else ''}",
            markup=False,
            soft_wrap=True,
        )


def _table(title: str) -> Table:
    """No lines, so that a table fits into 80 columns."""
    return Table(title=Text(title), box=None, pad_edge=False, padding=(0, 1, 0, 0))


def _two_lines(name: str) -> Text:
    return Text("\n".join(name.rsplit(" ", 1)))


def number(value: float | None, shape: str, scale: float = 1.0) -> str:
    return format(value * scale, shape) if _known(value) else "-"


def bits(value: float | None) -> str:
    """``1.29 Gbit``."""
    if not _known(value):
        return "-"
    for size, unit in ((1e12, "Tbit"), (1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} bit"


def _known(value: Any) -> bool:
    return value is not None and math.isfinite(value)
