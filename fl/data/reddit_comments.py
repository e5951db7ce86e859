"""Comments of Reddit in the format of LEAF: nine words of a row predict the word behind each.

A file holds {"users": [...], "num_samples": [...], "user_data": {user: {"x": [comment, ...], "y":
[...]}}}, and a comment is a list of rows of ten tokens, filled up with <PAD>: Caldas et al., "LEAF:
A Benchmark for Federated Settings", 2018. The files are read user by user, since the complete set
has gigabytes; once to count words and rows, once for the rows of the users who are kept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from fl.contracts import Array
from fl.data.samples import IGNORED
from fl.errors import DataError
from fl.regular_files import MAX_DATA_BYTES, open_regular

PAD, UNKNOWN = "<PAD>", "<UNK>"
VOCABULARY = 10_000  # words that have a number: <PAD>, <UNK>, and the most frequent ones
USERS = 1000  # those with the most rows are kept
CHUNK = 1 << 20  # characters that are read at a time
MOST_OF_A_USER = 1 << 28  # characters; a longer record is taken for a damaged file
USER_DATA = re.compile(r'"user_data"\s*:\s*\{')
SOURCE = (
    'the json files of the data set "reddit" of LEAF (github.com/TalwalkarLab/leaf), divided by '
    "time into train and test"
)


@dataclass(frozen=True, eq=False)
class Comments:
    """Rows of the users who are kept, the user with the most training rows first.

    Args:
        words: their numbers are their places; <PAD> is 0, <UNK> 1.
        train, test: rows, int64 [N, L].
        owners: per part, who wrote them, int64 [N].
    """

    words: tuple[str, ...]
    train: Array
    test: Array
    owners: tuple[Array, Array]


def inputs(rows: Array) -> Array:
    """All tokens of each row but the last, int64 [N, L - 1]."""
    return rows[:, :-1]


def targets(rows: Array) -> Array:
    """The token behind each, int64 [N, L - 1]; `IGNORED` where it is <PAD>."""
    following = rows[:, 1:].copy()
    following[following == 0] = IGNORED
    return following


def reddit_files(root: Path | None) -> tuple[list[Path], list[Path]]:
    """The json files of ROOT/reddit/train and ROOT/reddit/test.

    Raises:
        DataError: they are not there.
    """
    if root is None:
        raise DataError(
            "data set reddit is not here: set EDGESIM_DATA or --data to a folder with "
            f"reddit/train/*.json and reddit/test/*.json: {SOURCE}"
        )
    parts = tuple(sorted((root / "reddit" / part).glob("*.json")) for part in ("train", "test"))
    for part, found in zip(("train", "test"), parts, strict=True):
        folder = root / "reddit" / part
        if not found and (pickles := sorted((root / "reddit").rglob("*.pck"))):
            raise DataError(
                f"{folder} has no json file, and {pickles[0]} is a pickle, which is not read: put "
                f"there {SOURCE}; the vocabulary is counted from them"
            )
        if not found:
            raise DataError(f"{folder} has no json file: put there {SOURCE}")
    return parts[0], parts[1]


def read_comments(
    train: Iterable[Path], test: Iterable[Path], users: int = USERS, vocabulary: int = VOCABULARY
) -> Comments:
    """The rows of the users with the most training rows, as numbers of words.

    Words are numbered by how often all users of the training files write them, from 2 on; LEAF
    gives the most frequent one the number of <UNK>. Rows without any target are left out.

    Args:
        train: files.
        test: files.
        users: who are kept.
        vocabulary: words that have a number, with <PAD> and <UNK>.

    Raises:
        DataError: a file is damaged, or of another format.
    """
    train, test = list(train), list(test)
    counts, sizes = Counter[str](), Counter[str]()
    for user, rows in rows_of_users(train):
        sizes[user] += len(rows)
        counts.update(token for row in rows for token in row)
    del counts[PAD], counts[UNKNOWN]
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - 2]
    words = (PAD, UNKNOWN, *frequent)
    number = {word: place for place, word in enumerate(words)}
    # of equally many rows in the order of the files
    place = {user: k for k, (user, rows) in enumerate(sizes.most_common(users)) if rows}
    if not place:
        raise DataError(f"{train[0].parent} holds no row with a target")
    parts = [_encoded(rows_of_users(files), number, place) for files in (train, test)]
    (seen, own), (unseen, others) = parts
    if len(unseen) and unseen.shape[1] != seen.shape[1]:
        raise DataError(
            f"{test[0].parent} has rows of {unseen.shape[1]} tokens, {train[0].parent} of "
            f"{seen.shape[1]}"
        )
    return Comments(words, seen, unseen.reshape(-1, seen.shape[1]), (own, others))


def _encoded(
    users: Iterable[tuple[str, list[list[str]]]], number: dict[str, int], place: dict[str, int]
) -> tuple[Array, Array]:
    """Rows of the users who have a place, int64 [N, L], in the order of their places; whose."""
    held: dict[int, list[Array]] = {}
    for user, rows in users:
        if user in place and rows:
            codes = [[number.get(token, 1) for token in row] for row in rows]
            held.setdefault(place[user], []).append(np.array(codes, dtype=np.int64))
    order = sorted(held)
    sizes = [sum(map(len, held[k])) for k in order]
    rows_of = [part for k in order for part in held[k]]
    whole = np.concatenate(rows_of) if rows_of else np.empty((0, 0), dtype=np.int64)
    return whole, np.repeat(np.array(order, dtype=np.int64), sizes)


def rows_of_users(files: Iterable[Path]) -> Iterator[tuple[str, list[list[str]]]]:
    """Each user of the files with the rows that have a target, file by file.

    Raises:
        DataError: the file and the user whose record has another format.
    """
    length: int | None = None
    for path in files:
        for user, record in users_of(path):
            comments = record.get("x") if isinstance(record, dict) else None
            if not isinstance(comments, list) or not all(map(_is_comment, comments)):
                raise DataError(
                    f'{path} has a user "{user}" whose x is no list of comments, each a list of '
                    f"rows of tokens: expected {SOURCE}"
                )
            rows = [row for comment in comments for row in comment]
            length = length or (len(rows[0]) if rows else None)
            if any(len(row) != length for row in rows):
                raise DataError(f'{path} has a user "{user}" with rows that are not {length} long')
            yield user, [row for row in rows if any(token != PAD for token in row[1:])]


def _is_comment(comment: Any) -> bool:
    return isinstance(comment, list) and all(
        isinstance(row, list) and len(row) > 1 and all(isinstance(token, str) for token in row)
        for row in comment
    )


def users_of(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of "user_data" one after the other; no more than one is held at a time.

    Raises:
        DataError: the file cannot be read, or is no such json.
    """
    try:
        with TextIOWrapper(open_regular(path, MAX_DATA_BYTES), encoding="utf-8") as file:
            yield from _members(file.read)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise DataError(f"{path} cannot be read: {reason}; expected {SOURCE}") from error


def _members(read: Callable[[int], str]) -> Iterator[tuple[str, Any]]:
    """Name and value of each member of "user_data"; ValueError where the text is damaged."""
    text, found = "", None
    while found is None:
        if not (more := read(CHUNK)):
            raise ValueError('it has no "user_data"')
        text = text[-100:] + more  # the name may lie across two chunks
        found = USER_DATA.search(text)
    text = text[found.end() :]
    decode = json.JSONDecoder().raw_decode
    while True:
        text = text.lstrip(" \t\r\n,")
        if text.startswith("}"):
            return
        try:
            user, end = decode(text)
            colon = re.compile(r"\s*:\s*").match(text, end)
            if colon is None:
                raise json.JSONDecodeError("no colon", text, end)
            record, end = decode(text, colon.end())
        except json.JSONDecodeError as error:
            more = read(max(CHUNK, len(text))) if len(text) < MOST_OF_A_USER else ""
            if not more:
                raise ValueError(f"it ends, or is no json, behind {text[:40]!r}") from error
            text += more
            continue
        yield user, record
        text = text[end:]
