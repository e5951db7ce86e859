"""A run as a whole: what of its troubles users are told."""

import pytest

from edgesim.errors import RunError
from edgesim.runs.run import in_one_sentence


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
def test_a_full_memory_is_one_sentence(error, said):
    with pytest.raises(RunError, match=said), in_one_sentence():
        raise error


def test_another_error_stays_what_it_is():
    with pytest.raises(RuntimeError, match="a bug"), in_one_sentence():
        raise RuntimeError("a bug")
