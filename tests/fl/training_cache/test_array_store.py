"""The folder of arrays: its bound, its locks."""

import threading

import numpy as np
import pytest

from fl.training_cache.array_store import ArrayStore


def test_a_full_store_takes_nothing_more(tmp_path):
    store, array = ArrayStore(tmp_path / "s", max_bytes=1000), {"a": np.arange(100.0)}
    store.put("one", array, {"x": [1]})
    store.put("two", array, None)
    arrays, record = store.get("one")
    assert (arrays["a"] == array["a"]).all() and record == {"x": [1]}
    assert store.get("two") is None


@pytest.mark.slow
def test_who_comes_second_waits_for_what_the_first_makes(tmp_path):
    first, second, seen = ArrayStore(tmp_path), ArrayStore(tmp_path), []

    def come_second():
        with second.making("00key"):
            seen.append(second.get("00key"))

    with first.making("00key"):
        other = threading.Thread(target=come_second)
        other.start()
        other.join(0.2)
        assert other.is_alive() and not seen
        first.put("00key", {"a": np.ones(1)}, "made")
    other.join(60)
    assert seen[0][1] == "made"
    with first.making("00key"), second.making("01key"):  # another key is free
        pass
