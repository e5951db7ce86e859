"""What a word of YAML 1.2 means, and how it is written so that it keeps its meaning."""

from __future__ import annotations

import re
from typing import Any

import yaml

MAX_DIGITS = 4000  # of a whole number that is read in full; Python's int() refuses more than 4300
_INTEGER = re.compile(r"([-+]?)0*([0-9]+)")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NOTHING = {"", "~", "null", "Null", "NULL"}
_TAG = "tag:yaml.org,2002:"
_TAGS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}


def scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted YAML 1.2 word means: nothing, true or false, a number, or text."""
    if text in _NOTHING:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if whole := _INTEGER.fullmatch(text):
        # no key allows a number of so many digits, and errors show the first of them alone
        return int(whole[1] + whole[2][:MAX_DIGITS])
    if _REAL.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def write_text(content: dict[str, Any]) -> str:
    """A mapping of plain data as YAML 1.2, one key a line, in its own order and without aliases."""
    return yaml.dump(
        content,
        Dumper=_Writer,
        default_flow_style=False,
        width=10**6,
        sort_keys=False,
        allow_unicode=True,
    )


class _Writer(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes exactly the words that the reader would not take for text."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _TAG + _TAGS[type(scalar(value))]
        return super().resolve(kind, value, implicit)

    def ignore_aliases(self, data: Any) -> bool:
        return True  # the reader refuses aliases


def _represent_float(writer: Any, value: float) -> Any:
    text = repr(value).replace("inf", ".inf").replace("nan", ".nan")
    return writer.represent_scalar(f"{_TAG}float", text)


_Writer.add_representer(float, _represent_float)
