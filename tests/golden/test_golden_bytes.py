"""Every case gives the bytes that a record keeps, where the arithmetic is that of the record.

There is a record for each kind of machine on which one was made; the nearest one counts.

A change that is meant to change results refreshes the record: see refresh.py beside this file.
"""

from __future__ import annotations

import pytest
import torch

from tests.golden.cases import CASES
from tests.golden.digests import (
    COMMAND_LINE,
    arithmetic,
    differences,
    nearest_record,
    of_case,
    of_command_line,
    read_records,
)

RECORDS = read_records()


@pytest.fixture(scope="module")
def record():
    """(the record nearest to this machine, what this machine computes in another way than it)."""
    here = arithmetic()
    nearest = RECORDS[nearest_record(RECORDS, here)]
    return nearest, differences(nearest, here)


@pytest.fixture(autouse=True)
def one_thread():
    """As the Makefile has it; afterwards as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def compare(record, trains, name, run):
    """Fail with the case and every table whose bytes differ; skip where none can be expected."""
    nearest, apart = record
    if why := apart["counting"] + apart["training"] * trains:
        pytest.skip(f"other arithmetic than that of the record: {'; '.join(why)}")
    if name not in nearest["cases"]:
        pytest.skip("recorded on another kind of machine only: tests/golden/refresh.py records it")
    kept, found = nearest["cases"][name], run()
    wrong = [
        f"{table} ({'changed' if table in kept and table in found else 'not in both'})"
        for table in sorted(kept.keys() | found.keys())
        if kept.get(table) != found.get(table)
    ]
    assert not wrong, f"{name}: {', '.join(wrong)}"


def test_every_case_is_recorded():
    recorded = set().union(*(record["cases"] for record in RECORDS.values()))
    assert {*CASES, COMMAND_LINE} == recorded


def is_slow(name):
    """Left out by the fast tier, which keeps every method, every solver and the vectorised rounds."""  # noqa: E501
    kinds, ends = ("scenario", "executor", "data"), (":deadline", ":processes-reclaim")
    return name.startswith(kinds) or name.endswith(ends)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if is_slow(name) else []) for name in CASES],
)
def test_a_run_gives_the_bytes_of_the_record(name, record, tmp_path):
    case = CASES[name]
    compare(record, case.trains, name, lambda: of_case(case, tmp_path))


@pytest.mark.slow
def test_the_command_line_gives_the_bytes_of_the_record(record, tmp_path):
    compare(record, True, COMMAND_LINE, lambda: of_command_line(tmp_path))
