"""Writes digests.json anew, only where results shall change: ``refresh.py [PART OF A NAME ...]``.

Without arguments all cases are run, with them those whose names contain one of the arguments.

The record says that a change of the code left every result as it was, byte for byte. Who refreshes
it gives that up, so a refresh requires a line in CHANGELOG.md: which results changed, and why.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path


def main(parts: list[str]) -> None:
    """Run the cases, write the record, say which cases changed."""
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import torch

    from tests.golden import digests
    from tests.golden.cases import CASES

    torch.set_num_threads(1)
    runs = {name: lambda at, case=case: digests.of_case(case, at) for name, case in CASES.items()}
    runs[digests.COMMAND_LINE] = digests.of_command_line
    kept = json.loads(digests.KEPT.read_text(encoding="utf-8")) if digests.KEPT.exists() else {}
    before = kept.get("cases", {})
    cases = {}
    for name, run in runs.items():
        if parts and name in before and not any(part in name for part in parts):
            cases[name] = before[name]
            continue
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            cases[name] = run(Path(folder))
        print(f"{time.perf_counter() - begun:6.2f} s  {name}", flush=True)
    changed = [name for name in {**before, **cases} if before.get(name) != cases.get(name)]
    record = {"arithmetic": digests.arithmetic(), "cases": cases}
    digests.KEPT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{len(cases)} cases, changed: {', '.join(changed) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
