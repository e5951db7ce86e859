"""Every case gives the bytes that digests.json keeps, where the arithmetic is that of the record.

A change that is meant to change results refreshes the record: see refresh.py beside this file.
"""

from __future__ import annotations

import json

import pytest
import torch

from tests.golden.cases import CASES
from tests.golden.digests import COMMAND_LINE, KEPT, arithmetic, of_case, of_command_line

RECORD = json.loads(KEPT.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def differs():
    """What this machine computes in another way than the one of the record, by kind of run."""
    here = arithmetic()
    return {
        kind: [
            f"{name} is {here[kind].get(name)}, recorded with {value}"
            for name, value in RECORD["arithmetic"][kind].items()
            if here[kind].get(name) != value
        ]
        for kind in ("counting", "training")
    }


@pytest.fixture(autouse=True)
def one_thread():
    """As the Makefile has it; afterwards as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def compare(name, found):
    """Fail with the case and every table whose bytes differ."""
    kept = RECORD["cases"][name]
    wrong = [
        f"{table} ({'changed' if table in kept and table in found else 'not in both'})"
        for table in sorted(kept.keys() | found.keys())
        if kept.get(table) != found.get(table)
    ]
    assert not wrong, f"{name}: {', '.join(wrong)}"


def skip_unless_same(differs, trains):
    """Skip where other libraries or another processor round in other ways."""
    why = differs["counting"] + differs["training"] * trains
    if why:
        pytest.skip(f"other arithmetic than that of the record: {'; '.join(why)}")


def test_every_case_is_recorded():
    assert {*CASES, COMMAND_LINE} == RECORD["cases"].keys()


def is_slow(name):
    """Left out by the fast tier, which keeps every method, every solver and the vectorised rounds."""  # noqa: E501
    return name.startswith(("scenario", "executor", "data")) or name.endswith(":deadline")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if is_slow(name) else []) for name in CASES],
)
def test_a_run_gives_the_bytes_of_the_record(name, differs, tmp_path):
    skip_unless_same(differs, CASES[name].trains)
    compare(name, of_case(CASES[name], tmp_path))


@pytest.mark.slow
def test_the_command_line_gives_the_bytes_of_the_record(differs, tmp_path):
    skip_unless_same(differs, trains=True)
    compare(COMMAND_LINE, of_command_line(tmp_path))
