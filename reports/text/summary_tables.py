"""The report's tables: schemes, costs, targets, devices."""

from __future__ import annotations

import textwrap

import numpy as np

from reports.run_data import measures
from reports.run_data.load_runs import Run
from reports.run_data.schemes import Scheme
from reports.run_data.swept_keys import differing
from reports.styling.house_style import RHO
from reports.styling.table_formats import DASH, Column, Table, digits, figures


def scheme_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: what it is, its accuracy, how much it prunes, how well its allocations are certified."""
    columns = (
        Column("scheme", "Scheme", number=False),
        Column("method", "Method", number=False, printed=False),
        Column("solver", "Solver", number=False, printed=False),
        Column("seeds", "Seeds", printed=False),
        Column("rounds", "Rounds", printed=False),
        Column("final_accuracy", "Final accuracy (%)", digits(1, 100)),
        Column("final_accuracy_std_devices", "± devices (points)", digits(1, 100)),
        Column(
            "final_accuracy_ci95_seeds", "± seeds, 95 % (points)", digits(1, 100), printed=False
        ),
        Column("rho_mean", f"Mean {RHO}", digits(3)),
        Column(
            "certificate_worst", "Worst residual", lambda value: f"{value:.0e}" if value else "0"
        ),
    )
    caption = (
        "Schemes. Accuracy: mean over devices of each device's own model on its own test data, and its standard "
        "deviation over devices. Residual: the worst of the allocations' certificates (relative)."
    )
    return Table("schemes", caption, columns, tuple(_scheme_row(scheme) for scheme in schemes))


def _scheme_row(scheme: Scheme) -> tuple:
    accuracy = np.array([measures.final(run, "accuracy") for run in scheme.runs])
    return (
        scheme.label,
        str(scheme.first.summary["method"]),
        str(scheme.first.summary["solver"] or DASH),
        len(scheme.runs),
        int(scheme.first.summary["rounds"]),
        float(accuracy.mean()),
        measures.over_runs(scheme, lambda run: measures.final(run, "accuracy_std")),
        float(measures.half_width(accuracy)) if len(accuracy) > 1 else None,
        measures.over_runs(scheme, measures.rho_mean),
        float(np.max([measures.certificate_worst(run) for run in scheme.runs])),
    )


def cost_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: latency against its threshold, late and left-out devices, bits, joules."""
    columns = (
        Column("scheme", "Scheme", number=False),
        Column("mean_latency_s", "Mean latency (ms)", figures(4, 1e3)),
        Column("std_latency_s", "± rounds (ms)", _spread_ms),
        Column("max_latency_s", "Longest (ms)", figures(4, 1e3)),
        Column("latency_threshold_s", "Threshold (ms)", figures(4, 1e3), printed=False),
        Column("late_share", "Late (%)", digits(1, 100)),
        Column("infeasible_share", "Infeasible (%)", digits(1, 100), printed=False),
        Column("bits_up", "Up (Mbit)", figures(4, 1e-6)),
        Column("bits_down", "Down (Mbit)", figures(4, 1e-6)),
        Column("energy_j", "Energy (J)", figures(4)),
    )
    caption = (
        "Latency per round, and costs. Late and infeasible: share of the selected device-rounds. Bits and joules: sums "
        "over all devices and rounds, averaged over seeds."
    )
    return Table("costs", caption, columns, tuple(_cost_row(scheme) for scheme in schemes))


def _spread_ms(seconds: float) -> str:
    """A standard deviation in ms; less than a nanosecond is rounding, not spread."""
    return figures(2, 1e3)(seconds) if seconds >= 1e-9 else "0"


def _cost_row(scheme: Scheme) -> tuple:
    latency, over = measures.latencies_s(scheme), measures.over_runs
    return (
        scheme.label,
        float(latency.mean()),
        float(latency.std()),
        float(latency.max()),
        scheme.threshold_s,
        over(scheme, measures.late_share),
        over(scheme, lambda run: measures.late_share(run, "infeasible")),
        over(scheme, lambda run: measures.total(run, "bits_up")),
        over(scheme, lambda run: measures.total(run, "bits_down")),
        over(scheme, lambda run: measures.total(run, "energy_j")),
    )


def target_table(schemes: list[Scheme]) -> Table | None:
    """Round, time, bits and joules to each target accuracy; None where the runs name no targets."""
    targets = sorted(schemes[0].first.summary["targets"], key=float)
    if not targets:
        return None
    columns = (
        Column("target_accuracy", "Target (%)", digits(1, 100)),
        Column("scheme", "Scheme", number=False),
        Column("reached", "Reached", number=False),
        Column("round", "Round", lambda value: f"{value:.4g}"),
        Column("time_s", "Time (s)", figures(4)),
        Column("bits", "Bits (Mbit)", figures(4, 1e-6)),
        Column("energy_j", "Energy (J)", figures(4)),
    )
    caption = (
        "To a target accuracy: the first evaluated round whose mean accuracy reaches it, and what had been spent by "
        "then (bits: up and down). With several seeds: means over those that reached it."
    )
    rows = tuple(_target_row(scheme, float(target)) for target in targets for scheme in schemes)
    return Table("targets", caption, columns, rows)


def _target_row(scheme: Scheme, target: float) -> tuple:
    found = [hit for run in scheme.runs if (hit := measures.reached(run, target))]
    if not found:
        return target, scheme.label, "not reached", None, None, None, None
    text = "yes" if len(found) == len(scheme.runs) else f"{len(found)} of {len(scheme.runs)} seeds"
    means = [
        float(np.mean([getattr(hit, name) for hit in found]))
        for name in ("round", "time_s", "bits", "energy_j")
    ]
    return target, scheme.label, text, *means


def device_table(run: Run) -> Table | None:
    """The devices of a run with their rates in round 0 over the whole band; None where the run tells none."""
    if run.devices is None:
        return None
    known = {
        "device": Column("device", "Device"),
        "distance_m": Column("distance_m", "Distance (m)", figures(3)),
        "path_gain_db": Column("path_gain_db", "Path gain (dB)", digits(1)),
        "tx_power_w": Column("tx_power_w", "Transmit power (mW)", figures(3, 1e3)),
        "cpu_hz": Column("cpu_hz", "CPU (GHz)", figures(3, 1e-9)),
        "rate_bps": Column("rate_bps", "Rate, whole band (Mbit/s)", figures(4, 1e-6)),
        "samples": Column("samples", "Samples"),
    }
    names = [name for name in run.devices.columns if name in known]
    rows = run.devices[names].astype(object).itertuples(index=False, name=None)
    return Table(
        "devices",
        "Devices, with their uplink rates in round 0 if each had the whole band.",
        tuple(known[name] for name in names),
        tuple(tuple(row) for row in rows),
    )


def difference_table(schemes: list[Scheme]) -> Table | None:
    """One line per scheme, one column per key that not all resolved scenarios have alike; None with one scheme."""
    if len(schemes) < 2:
        return None
    keys = differing([scheme.values for scheme in schemes])
    columns = [Column("scheme", "Scheme", number=False), Column("seeds", "Seeds", number=False)]
    columns += [Column(key, key, _shortened, number=False) for key in keys]
    rows = [
        (
            scheme.label,
            ", ".join(str(run.seed) for run in scheme.runs),
            *(scheme.values.get(key) for key in keys),
        )
        for scheme in schemes
    ]
    caption = "Every key of the resolved scenarios in which the schemes differ; a dash: the scenario does not have it."
    return Table("differences", caption, tuple(columns), tuple(rows))


def _shortened(text: str) -> str:
    return textwrap.shorten(text, 60, placeholder="…")
