"""A play as a learning task: 80 characters of a speaker predict the next one.

A block of lines begins with the name of its speaker and a colon; blocks are separated by an empty
line. All that a speaker says, in order and without the names, is one text. Samples are taken every
`STRIDE` characters. The first 80 % of a text is for training: the character to be predicted
decides, so that a test sample may look back into the training text but predicts none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fl.contracts import Array
from fl.data.file_readers import contents
from fl.errors import DataError

CONTEXT = 80  # characters that are given, as in LEAF (Caldas et al., 2018)
STRIDE = 10  # characters between samples: 80,130 training samples instead of 800,000
TRAIN_SHARE = 0.8


@dataclass(frozen=True, eq=False)
class Play:
    """A text by speaker.

    Args:
        codes: what the speakers say, one after the other, int64 [M], places in ``characters``.
        speakers: their names, the one who says most first.
        train, test: places in ``codes`` of the characters to be predicted, int64 [N].
        owners: per part, who says them: number of the speaker, int64 [N].
    """

    codes: Array
    characters: tuple[str, ...]
    speakers: tuple[str, ...]
    train: Array
    test: Array
    owners: tuple[Array, Array]

    def contexts(self, places: Array) -> Array:
        """The 80 characters before each place, int64 [N, 80]."""
        return self.codes[places[:, None] + np.arange(-CONTEXT, 0)]


def read_play(path: Path) -> Play:
    """The play in a file; DataError where it is none."""
    try:
        text = contents(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text: byte {error.start} is no UTF-8") from error
    said = speeches(text)
    if not said:
        raise DataError(
            f"{path} holds no speakers: expected blocks of lines that begin with a name and a colon"
        )
    play = divided(said, tuple(sorted(set(text))))
    if not len(play.train):
        raise DataError(
            f"{path} is too short: no speaker says the {CONTEXT} characters that a sample needs"
        )
    return play


def speeches(text: str) -> dict[str, str]:
    """Text of each speaker, in the order of their first words; a block without a name continues."""
    said: dict[str, list[str]] = {}
    speaker = None
    for block in text.split("\n\n"):
        head, _, lines = block.partition("\n")
        if head.endswith(":"):
            speaker = head[:-1]
        else:
            lines = block
        if speaker is not None and lines.strip():
            said.setdefault(speaker, []).append(lines.strip("\n"))
    return {name: "\n".join(lines) for name, lines in said.items()}


def divided(said: dict[str, str], characters: tuple[str, ...]) -> Play:
    """The speakers in order of size, their texts as codes, and the places of the samples."""
    speakers = tuple(
        sorted(said, key=lambda name: -len(said[name]))
    )  # equal ones in the order of their first words
    code = {character: i for i, character in enumerate(characters)}
    codes = np.array([code[c] for name in speakers for c in said[name]], dtype=np.int64)
    parts = list(zip(*places([len(said[name]) for name in speakers]), strict=True))
    train, test = (np.concatenate(part) for part in parts)
    owners = [np.repeat(np.arange(len(speakers)), [len(one) for one in part]) for part in parts]
    return Play(codes, characters, speakers, train, test, (owners[0], owners[1]))


def places(lengths: list[int]) -> Iterator[tuple[Array, Array]]:
    """Per text, where its training and its test samples lie when all texts follow each other."""
    first = 0
    for length in lengths:
        cut = int(TRAIN_SHARE * length)
        train = np.arange(CONTEXT, cut, STRIDE)
        test = np.arange(max(CONTEXT, cut), length, STRIDE)
        yield first + train, first + test
        first += length
