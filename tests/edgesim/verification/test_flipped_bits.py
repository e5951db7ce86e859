"""Promise 8: a single flipped bit in any stored file is noticed before it is used, or harmless."""

import importlib.util
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "reliability.py"
FLIPS = 20  # of each file; `make bench-reliability FLIPS=250` tries more


@pytest.fixture(scope="module")
def reliability():
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("reliability_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_promise_8_flipped_bits_are_noticed_or_harmless(reliability, tmp_path):
    found = dict(reliability.outcomes(tmp_path, FLIPS))
    allowed = set(reliability.OUTCOMES) - {reliability.WRONG}
    assert all(set(outcomes) <= allowed for outcomes in found.values()), found
    assert len(found) > 15 and all(sum(each.values()) == FLIPS for each in found.values())
    # Harmless only where the file is not used, or is made again.
    used = [name for name, each in found.items() if each[reliability.HARMLESS] == 0]
    for name in ("interrupted: checkpoint/state.safetensors", "interrupted: checkpoint/log.arrows"):
        assert name in used
    assert {"finished: summary.json", "finished: spans.parquet", "sweep.json"} <= set(used)
