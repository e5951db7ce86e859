"""Results as HTML, as notebooks show them."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.errors import counted
from edgesim.results.summary_file import summary_row

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 20
SHOWN = ("status", "final_accuracy", "time_s", "mean_latency_s", "late_share", "energy_j")


def results_html(title: str, points: pd.DataFrame, keys: list[str]) -> str:
    """A heading and the key figures of the first runs.

    Args:
        title: of the heading.
        points: table with one row a run, see docs/tables.md.
        keys: its columns that say which run it is, beside scheme and seed.
    """
    columns = ["scheme", "seed", *keys, *(name for name in SHOWN if name in points)]
    more = len(points) - MOST_ROWS
    table = points[columns].head(MOST_ROWS).to_html(index=False, float_format="%.4g", na_rep="")
    rest = f"<p>and {counted(more, 'run')} more, in <code>.points</code></p>" if more > 0 else ""
    return f"<p><b>{escape(title)}</b></p>{table}{rest}"


def run_html(summary: dict[str, Any], folder: Path | None) -> str:
    """The same of one run.

    Args:
        summary: content of summary.json.
        folder: of the run; None: kept in memory.
    """
    import pandas as pd

    row = {"scheme": summary["scheme"], "seed": summary["seed"], **summary_row(summary)}
    return results_html(str(folder or "run in memory"), pd.DataFrame([row]), [])
