"""sweep.parquet, the table of a sweep's points beside its sweep.json."""

from __future__ import annotations

import io
from pathlib import Path

from edgesim.records.atomic_files import write_atomic
from edgesim.results.loaded_results import load_sweep

SWEEP_TABLE = "sweep.parquet"


def write_sweep_table(folder: Path) -> None:
    """Write what `load_sweep` gives as ``points``; the same results always give the same bytes.

    Args:
        folder: of a sweep, with its sweep.json.
    """
    content = io.BytesIO()
    load_sweep(folder).points.to_parquet(content, index=False, compression="zstd")
    write_atomic(folder / SWEEP_TABLE, content.getvalue())
