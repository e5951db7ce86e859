"""Names travel for what both processes have, and tensors without what they are cut of."""

from functools import lru_cache

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.executors.task_pickling import packed, shared_objects, unpacked, without_caches
from fl.models.architectures import build
from fl.task import LearningTask


@pytest.fixture(scope="module")
def task(digits):
    return LearningTask(build("mlp", digits.input_shape, 10), digits, 16, Seeds(3))


def test_what_both_sides_have_goes_by_its_name(task):
    here, there = (shared_objects(without_caches(each)) for each in (task, task))
    content = packed({"train": here["images"], "of": here["task"], "own": 5}, here)
    assert len(content) < 200 < here["images"].nbytes
    given = unpacked(content, there)
    assert given["of"] is there["task"] is not here["task"]
    assert given["train"] is there["images"] and given["own"] == 5


def test_an_equal_object_that_is_not_shared_travels_itself():
    shared = {"data": np.arange(3)}
    other = np.arange(3)
    given = unpacked(packed([other, shared["data"]], shared), {"data": "theirs"})
    assert given[0].tolist() == [0, 1, 2] and given[1] == "theirs"


def test_a_view_takes_its_own_values_along_and_no_others():
    whole = torch.arange(100_000.0).reshape(100, 1000)
    for view in (whole[3], whole[:, 7], whole[2].requires_grad_()):
        content = packed(view, {})
        assert len(content) < 6_000 < whole.nbytes
        assert torch.equal(unpacked(content, {}), view.detach())


def test_a_cached_function_within_a_function_is_cached_there_too():
    factor, seen = 3, []

    @lru_cache(maxsize=2)
    def times(x):
        seen.append(x)
        return factor * x

    times(1)
    again = unpacked(packed(times, {}), {})
    assert again.cache_parameters() == times.cache_parameters() and again.cache_info().currsize == 0
    assert [again(5), again(5)] == [15, 15] and again.cache_info().hits == 1 and seen == [1]
