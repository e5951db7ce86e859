"""Promise 8: a single flipped bit in any stored file is noticed before it is used, or harmless."""

import importlib.util
import random
from contextlib import suppress
from pathlib import Path

import pytest

from edgesim.errors import ResultsError
from edgesim.records.checkpoint import large_arrays
from edgesim.results.sweep_file import sweep_points
from edgesim.verification.check_result import FAILED
from edgesim.verification.stored_bytes import check_checkpoint, check_files
from fl.stored_files import DamagedFileError, read_sealed_arrays

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "reliability.py"
FLIPS = 100  # of each file
CARRIED_OUT = 4  # of each file; `make bench-reliability FLIPS=250` carries out more


@pytest.fixture(scope="module")
def reliability():
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("reliability_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_arrays, "LARGE_BYTES", module.LARGE_BYTES)
        yield module


def is_noticed(path):
    """Does what reads this file see that it is damaged?"""
    if path.name == "sweep.json":
        with suppress(ResultsError):
            sweep_points(path.parent)
            return False
        return True
    checkpoint = next((each for each in path.parents if each.name == "checkpoint"), None)
    if checkpoint is not None:
        return check_checkpoint(checkpoint.parent)[0].outcome == FAILED
    if (path.parent / "SHA256SUMS").exists():
        return check_files(path.parent).outcome == FAILED
    with suppress(DamagedFileError):
        read_sealed_arrays(path)
        return False
    return True


@pytest.mark.slow
def test_promise_8_each_flipped_bit_is_noticed_by_what_reads_the_file(reliability, tmp_path):
    files = [path for _, path, _ in reliability.Campaign(tmp_path).files()]
    assert len(files) > 25 and not any(map(is_noticed, files))
    for path in files:
        draw, whole = random.Random(path.name), path.read_bytes()
        for _ in range(FLIPS):
            path.write_bytes(reliability.flipped(whole, draw))
            assert is_noticed(path), path
        path.write_bytes(whole)


@pytest.mark.slow
def test_promise_8_a_run_goes_on_from_flipped_bits_to_the_same_bytes(reliability, tmp_path):
    found = dict(reliability.outcomes(tmp_path, CARRIED_OUT))
    allowed = set(reliability.OUTCOMES) - {reliability.WRONG}
    assert all(set(outcomes) <= allowed for outcomes in found.values()), found
    assert len(found) > 25 and all(sum(each.values()) == CARRIED_OUT for each in found.values())
    # Harmless only where the file is not used, or is made again.
    used = [name for name, each in found.items() if each[reliability.HARMLESS] == 0]
    for name in ("state.safetensors", "log.arrows"):
        assert f"interrupted: checkpoint/{name}" in used
    arrays = [name for name in used if name.startswith("interrupted: checkpoint/arrays-")]
    assert len(arrays) == 3  # those of the last state
    assert {"finished: summary.json", "finished: spans.parquet", "sweep.json"} <= set(used)
