"""Files that carry a digest of their own bytes, so that damage is noticed before they are used.

A file that is replaced often holds its own digest, so that both change in one step: its writer
leaves `BLANK` somewhere in the bytes, such as in the metadata of a safetensors file or under a key
of a JSON object, and `sealed` puts SHA-256 of these bytes in its place.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fl.contracts import Array
from fl.errors import LearningError
from fl.regular_files import read_regular

MARK = b"sha256:"
BLANK = "sha256:" + "0" * 64  # what a writer leaves for the digest
MAX_JSON_BYTES = 256 << 20
MAX_ARRAYS_BYTES = 32 << 30  # of a checkpoint or a stored training
_DIGEST = re.compile(rb"sha256:([0-9a-f]{64})")


class DamagedFileError(LearningError):
    """The bytes of a file are not those that were written; the sentence does not name the file."""


def sealed(raw: bytes) -> bytes:
    """The bytes with their digest in the place of `BLANK`, which they hold once."""
    blank = BLANK.encode()
    before, found, after = raw.partition(blank)
    if not found or blank in after:
        raise ValueError("the bytes to seal must hold the blank digest once")
    return b"".join((before, MARK, hashlib.sha256(raw).hexdigest().encode(), after))


def is_sealed(raw: bytes) -> bool:
    """Do the bytes hold a digest, whatever the damage around it?"""
    return _DIGEST.search(raw) is not None


def check_seal(raw: bytes) -> None:
    """Compare the digest in the bytes with that of the bytes.

    Raises:
        DamagedFileError: they differ, or there is no digest.
    """
    found = _DIGEST.search(raw)
    if found is None:
        raise DamagedFileError("it holds no digest of its bytes")
    digest = hashlib.sha256(raw[: found.start()])
    digest.update(BLANK.encode())
    digest.update(memoryview(raw)[found.end() :])
    if digest.hexdigest().encode() != found[1]:
        raise DamagedFileError("its bytes do not match their digest")


def read_sealed_json(path: Path) -> Any:
    """What a JSON file with a digest holds.

    Raises:
        DamagedFileError: its bytes are not those that were written.
        OSError: it cannot be read.
    """
    raw = read_regular(path, MAX_JSON_BYTES)
    check_seal(raw)
    return json.loads(raw)


def sealed_arrays(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> bytes:
    """A safetensors file of arrays and facts for JSON, with its digest beside the facts."""
    from safetensors.numpy import save

    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # Under one key: safetensors keeps no order of keys, and the same content gives the same bytes.
    text = json.dumps({**facts, "digest": BLANK}, sort_keys=True)
    return sealed(save(contiguous, metadata={"facts": text}))


def read_sealed_arrays(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and facts of a file that `sealed_arrays` made.

    Raises:
        DamagedFileError: its bytes are not those that were written.
        OSError: it cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    raw = read_regular(path, MAX_ARRAYS_BYTES)
    check_seal(raw)
    try:
        size = int.from_bytes(raw[:8], "little")
        facts = json.loads(json.loads(raw[8 : 8 + size])["__metadata__"]["facts"])
        arrays = load(raw)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"it is no file of arrays ({error})") from error
    return {name: arrays[name] for name in sorted(arrays)}, facts
