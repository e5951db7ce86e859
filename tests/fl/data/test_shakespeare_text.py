"""A play as a learning task: speakers, samples, damaged texts."""

import os
from pathlib import Path

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.data import shakespeare_text as text
from fl.data.datasets import load, locate, spread
from fl.errors import DataError

PLAY = "First:\nTo be, or\nnot.\n\nSecond:\nNo: listen:\n\nFirst:\nWell.\n\nNobody says this:\n\n"


def test_speeches_by_speaker():
    assert text.speeches(PLAY) == {"First": "To be, or\nnot.\nWell.", "Second": "No: listen:"}
    assert text.speeches("A stage.\n\nFirst:\nAye.\n\nA second verse.") == {
        "First": "Aye.\nA second verse."
    }


def write_play(root, **said):
    (root / "shakespeare").mkdir(exist_ok=True)
    path = root / "shakespeare" / "input.txt"
    path.write_text("\n\n".join(f"{name}:\n{words}" for name, words in said.items()))
    return path


def refused(root, said, dataset="shakespeare"):
    with pytest.raises(DataError, match=said) as by_locate:
        locate(dataset, root)
    with pytest.raises(DataError, match=said):
        load(dataset, root)
    assert "\n" not in str(by_locate.value)


def test_samples_of_a_play(tmp_path):
    ada = "".join(chr(65 + i % 26) for i in range(200))
    write_play(tmp_path, BOB="x" * 50, ADA=ada, EVE="y" * 125)
    assert [path.name for path in locate("shakespeare", tmp_path)] == ["input.txt"]
    samples = load("shakespeare", tmp_path)
    letters = np.array(samples.classes)
    assert samples.input_shape == (80,)
    assert sorted(letters) == letters.tolist()
    x_train, x_test = samples.images()
    assert x_train.dtype == np.int64
    ours = (
        samples.owners[0] == 0
    )  # Ada says most: 200 characters, of which the first 160 are for training
    assert [ada[place] for place in range(80, 160, 10)] == letters[samples.y_train[ours]].tolist()
    assert "".join(letters[x_train[ours][1]]) == ada[10:90]
    theirs = samples.owners[1] == 0
    assert [ada[place] for place in range(160, 200, 10)] == letters[samples.y_test[theirs]].tolist()
    assert "".join(letters[x_test[theirs][0]]) == ada[80:160]
    assert np.bincount(samples.owners[0], minlength=3).tolist() == [8, 2, 0]  # Bob says too little
    assert np.bincount(samples.owners[1], minlength=3).tolist() == [4, 3, 0]
    divided = spread(load("shakespeare", tmp_path), 2, Seeds(0), kind="speakers")
    assert divided.samples.tolist() == [8, 2]
    assert np.array_equal(divided.x_train[divided.train_index[0]], x_train[ours])


def test_a_text_that_is_no_play(tmp_path):
    path = write_play(tmp_path, ADA="too short")
    with pytest.raises(DataError, match="no speaker says the 80 characters"):
        load("shakespeare", tmp_path)
    path.write_text("Nobody speaks here.")
    with pytest.raises(DataError, match="holds no speakers"):
        load("shakespeare", tmp_path)
    path.write_bytes(b"First:\n\xff")
    with pytest.raises(DataError, match="is no text: byte 7 is no UTF-8"):
        load("shakespeare", tmp_path)
    path.write_bytes(b"")
    refused(tmp_path, "input.txt is empty")
    path.unlink()
    refused(tmp_path, r"input.txt is missing.*that holds \"shakespeare\"$")


def test_text_is_not_fetched(monkeypatch):
    monkeypatch.delenv("EDGESIM_DATA", raising=False)
    refused(None, "data set shakespeare is not here: set EDGESIM_DATA")


REAL = Path(os.environ.get("EDGESIM_DATA", ""))


@pytest.mark.slow
@pytest.mark.needs_data
def test_the_real_play():
    if not (REAL / "shakespeare").is_dir():
        pytest.skip("EDGESIM_DATA is unset or has no folder shakespeare")
    samples = load("shakespeare")
    assert len(samples.classes) == 65
    assert (len(samples.y_train), len(samples.y_test)) == (80_130, 20_635)
    divided = spread(load("shakespeare"), 100, Seeds(0), kind="speakers")
    assert (divided.samples.max(), divided.samples.min()) == (3_002, 148)
    assert min(map(len, divided.test_index)) >= 38
