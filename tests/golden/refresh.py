"""Writes the record of this kind of machine, only where results shall change.

    refresh.py [PART OF A NAME ...]

With arguments only cases are run whose names contain one of them, or that are not recorded here
yet; without arguments all. A kind of machine that has no record yet gets a file of its own. Cases
that changed are taken out of the other records: what they say is no longer true, and can only be
recorded there.

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
    records, here = digests.read_records(), digests.arithmetic()
    kept = digests.nearest_record(records, here)
    if any(digests.differences(records[kept], here).values()):
        kept = digests.RECORDS / f"{digests.processor()}.json"
    before = records.get(kept, {}).get("cases", {})
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
    records[kept] = {"arithmetic": here, "cases": cases}
    for file, record in records.items():
        for name in changed if file != kept and before else ():
            asked_for = any(part in name for part in parts)  # and what it was here is not known
            if name in before or name not in cases or asked_for:
                record["cases"].pop(name, None)
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        file.write_text(text, encoding="utf-8")
    print(f"{len(cases)} cases, changed: {', '.join(changed) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
