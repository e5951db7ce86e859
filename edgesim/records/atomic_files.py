"""Files that are replaced as a whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path


def write_atomic(path: Path, content: bytes | memoryview | str) -> None:
    """Write a file so that a crash or a full disk leaves the old one or the new one."""
    data = content.encode() if isinstance(content, str) else content
    new = path.with_name(path.name + ".new")
    try:
        new.unlink(missing_ok=True)  # a link there would have another file written
        new.write_bytes(data)
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def json_text(value: object) -> str:
    """A value as indented JSON with sorted keys; nan is refused."""
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n"
