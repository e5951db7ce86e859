"""The tables of docs/reproduction.md are what the scenarios of Liu et al. give, line by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgesim import simulate
from edgesim.scenario.loader import expand

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
PAPERS = ROOT / "scenarios/papers"


def lines(title: str) -> dict[str, list[str]]:
    """First cell -> the other cells of the table under a heading."""
    section = PAGE.split(f"## {title}")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if "|" in line
    ]
    return {first: others for first, *others in rows[2:]}


def runs(name: str):
    return {label: simulate(one) for label, one in expand(PAPERS / name, ["rounds=20"])}


@pytest.mark.slow
def test_the_discrepancies():
    stated, found = (
        lines("Where equations and numbers of the paper part"),
        runs("liu-discrepancies.yaml"),
    )
    assert list(stated) == list(found)
    for label, run in found.items():
        rounds = run.rounds
        ours = f"{1e3 * rounds.latency_s.mean():.2f}", f"{rounds.rho_mean.mean():.3f}"
        late = f"{100 * rounds.late.sum() / rounds.selected.sum():.0f} %"
        assert stated[label][:3] == [*ours, late], label


@pytest.mark.slow
def test_the_warm_up_that_46_drops_is_what_everybody_is_late_by():
    run = runs("liu-discrepancies.yaml")["warm-up not planned as in 46"]
    assert run.rounds.latency_s.to_numpy() == pytest.approx(0.025 + 5 * 402_826 / 3e9, rel=1e-9)


@pytest.mark.slow
def test_table_1():
    rows, found = lines("Table I: latency per round, ms"), runs("liu-table1.yaml")
    stated = re.findall(r"\d+\.\d\d", " ".join(cells[1] for cells in rows.values()))
    order = (
        "proposed",
        "equal resource",
        "equal resource capped",
        "personalization only",
        "pruning only",
    )
    order = *order, "pruning only capped", "fedavg"
    assert stated == [f"{1e3 * found[label].rounds.latency_s.mean():.2f}" for label in order]
