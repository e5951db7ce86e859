"""A run as a whole: what of its troubles users are told."""

import pytest

from edgesim import load
from edgesim.errors import RunError
from edgesim.runs.error_sentences import user_errors


@pytest.fixture
def scenario():
    return load("scenarios/demo.yaml", label="joint")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            MemoryError("the memory does not hold the training of 2 models"),
            "the memory does not hold the training of 2",
        ),
        (MemoryError(), "the memory is full; make room"),
        (
            RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
            ),
            "the memory is full;",
        ),
    ],
)
def test_a_full_memory_is_one_sentence(scenario, error, said):
    with pytest.raises(RunError, match=said), user_errors(scenario):
        raise error


def test_another_error_stays_what_it_is(scenario):
    with pytest.raises(RuntimeError, match="a bug"), user_errors(scenario):
        raise RuntimeError("a bug")
