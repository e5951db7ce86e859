"""The reader of LEAF's Reddit on a miniature of its layout: three users with a few comments."""

import json

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.data import reddit_comments
from fl.data.datasets import load, locate, spread
from fl.data.reddit_comments import read_comments, users_of
from fl.data.samples import IGNORED
from fl.errors import DataError

PAD = "<PAD>"


def row(text):
    """Ten tokens, as LEAF cuts a comment: <BOS>, words, <EOS>, padding."""
    tokens = text.split()
    return tokens + [PAD] * (10 - len(tokens))


ANN = [
    [row("<BOS> to be or not to be that is the"), row("question <EOS>")],
    [row("<BOS> be <EOS>")],
]
BEN = [[row("<BOS> to be <EOS>"), row("be")]]  # the second row has no target
CAL = [[row("<BOS> the rest is silence <EOS>")]]


def write(path, users):
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"target_tokens": [], "count_tokens": 1, "subreddit": "a", "created_utc": 1, "score": 1}
    content = {
        "users": list(users),
        "num_samples": [len(comments) for comments in users.values()],
        "user_data": {
            user: {"x": comments, "y": [about] * len(comments)} for user, comments in users.items()
        },
    }
    path.write_text(json.dumps(content))


@pytest.fixture
def root(tmp_path):
    """ROOT with reddit/train in two files and reddit/test in one; "user_data" is a user too."""
    write(tmp_path / "reddit" / "train" / "a.json", {"user_data": BEN, "ann": ANN})
    write(tmp_path / "reddit" / "train" / "b.json", {"cal": CAL, "ann": CAL})
    write(
        tmp_path / "reddit" / "test" / "a.json", {"ann": [[row("<BOS> be wise <EOS>")]], "cal": CAL}
    )
    return tmp_path


def read(root, **options):
    parts = (sorted((root / "reddit" / part).glob("*.json")) for part in ("train", "test"))
    return read_comments(*parts, **options)


def test_words_are_numbered_by_how_often_they_are_written(root):
    """<BOS> 5, <EOS> 5, be 4, is 3, the 3, to 3; equal ones by the alphabet, from 2 on."""
    words = read(root).words
    assert words[:8] == (PAD, "<UNK>", "<BOS>", "<EOS>", "be", "is", "the", "to")
    assert words[8:] == ("rest", "silence", "not", "or", "question", "that")


def test_rows_are_inputs_and_the_words_behind_them(root):
    samples = load("reddit", root)
    number = {word: place for place, word in enumerate(samples.classes)}
    x, y = samples.images()[0], samples.y_train
    assert x.shape == y.shape == (6, 9) and samples.input_shape == (9,) and samples.text
    assert samples.owners[0].tolist() == [
        0,
        0,
        0,
        0,
        1,
        2,
    ]  # ann 4 rows, then in order of the files
    first = ["<BOS>", "to", "be", "or", "not", "to", "be", "that", "is", "the"]
    assert x[0].tolist() == [number[word] for word in first[:-1]]
    assert y[0].tolist() == [number[word] for word in first[1:]]
    assert x[1].tolist() == [number["question"], number["<EOS>"], *[0] * 7]
    assert y[1].tolist() == [number["<EOS>"], *[IGNORED] * 8]


def test_a_row_without_a_target_is_left_out(root):
    assert not (load("reddit", root).y_train == IGNORED).all(axis=1).any()
    assert len(load("reddit", root).y_train) == 6  # of the 7 that are written


def test_unknown_words_and_rare_ones_are_one(root):
    samples = load("reddit", root)
    assert samples.images()[1][0].tolist() == [2, 4, 1, 3, *[0] * 5]  # <BOS> be <UNK> <EOS>
    assert samples.y_test[0].tolist() == [4, 1, 3, *[IGNORED] * 6]
    few = read(root, vocabulary=5)
    assert few.words == (PAD, "<UNK>", "<BOS>", "<EOS>", "be") and few.train.max() == 4


def test_the_users_with_the_most_rows_are_kept_with_their_test_rows(root):
    kept = read(root, users=1)
    assert len(kept.train) == 4 and len(kept.test) == 1 and set(kept.owners[0]) == {0}
    divided = spread(load("reddit", root), 3, Seeds(0), kind="natural", validation=0.3)
    assert divided.samples.tolist() == [3, 1, 1] and len(divided.validation_index[0]) == 1
    assert [len(index) for index in divided.test_index] == [1, 0, 1]
    assert divided.label_counts().tolist() == [[3], [1], [1]]
    assert divided.test_weights.tolist() == [3, 5]  # words of <BOS> be wise <EOS> and of cal's row
    with pytest.raises(DataError, match=r'"labels", .* has several labels; use iid, natural or'):
        spread(load("reddit", root), 3, Seeds(0), kind="labels", labels_per_device=1)


def test_no_more_than_a_user_is_held(root, monkeypatch):
    """The same whatever is read at a time, down to a character."""
    whole = read(root)
    for size in (1, 7, 64):
        monkeypatch.setattr(reddit_comments, "CHUNK", size)
        again = read(root)
        assert again.words == whole.words and np.array_equal(again.train, whole.train)
    path = root / "reddit" / "train" / "a.json"
    assert [user for user, _ in users_of(path)] == ["user_data", "ann"]


def test_files_are_located(root):
    names = [str(path.relative_to(root / "reddit")) for path in locate("reddit", root)]
    assert names == ["train/a.json", "train/b.json", "test/a.json"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "train/a.json",
            '{"users": []}',
            r'a.json cannot be read: it has no "user_data"; expected',
        ),
        ("train/a.json", '{"user_data": {"ann": {"x": [', 'it ends, or is no json, behind \'"ann"'),
        ("train/a.json", '{"user_data": {"ann" {}}}', "it ends, or is no json, behind"),
        (
            "test/a.json",
            '{"user_data": {"ann": {"x": ["be"]}}}',
            'user "ann" whose x is no list of',
        ),
        (
            "test/a.json",
            '{"user_data": {"ann": {"x": [[[1, 2]]]}}}',
            'user "ann" whose x is no list',
        ),
        (
            "train/b.json",
            '{"user_data": {"cal": {"x": [[["a", "b"]]]}}}',
            "rows that are not 10 long",
        ),
        (
            "test/a.json",
            '{"user_data": {"ann": {"x": [[["a", "b"]]]}}}',
            "has rows of 2 tokens, .*10",
        ),
    ],
)
def test_damage_is_one_sentence(root, name, content, sentence):
    (root / "reddit" / name).write_text(content)
    with pytest.raises(DataError, match=sentence) as caught:
        load("reddit", root)
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_named_and_pickles_are_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("EDGESIM_DATA", raising=False)
    with pytest.raises(DataError, match=r"not here: set EDGESIM_DATA .*reddit/train/.*LEAF"):
        load("reddit", None)
    with pytest.raises(DataError, match=r"reddit/train has no json file: put there .*LEAF"):
        load("reddit", tmp_path)
    (tmp_path / "reddit").mkdir()
    (tmp_path / "reddit" / "reddit_vocab.pck").write_bytes(b"\x80")
    with pytest.raises(DataError, match=r"reddit_vocab.pck is a pickle, which is not read: put"):
        load("reddit", tmp_path)
