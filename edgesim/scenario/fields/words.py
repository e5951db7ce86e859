"""Readers of words: one of some, one that a pattern describes, a name, a label."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgesim.scenario.section import Reader, refuse


@dataclass(frozen=True)
class Word(Reader[str]):
    """One line of text.

    Args:
        options: the only words allowed; empty: any.
        pattern: regular expression that the word must match.
        looks: what the word is, as a part of a sentence.
    """

    options: Sequence[str] = ()
    pattern: str = ""
    looks: str = "a word"

    def read(self, given: object) -> str:
        if self.options and given not in self.options:
            near = difflib.get_close_matches(str(given), self.options, n=1)
            hint = f"did you mean {near[0]}?" if near else f"allowed is {self.allowed}"
            raise refuse(given, f"; {hint}")
        if not isinstance(given, str) or not given.strip() or "\n" in given or "\x00" in given:
            quotes = " in quotes" if isinstance(given, int | float) else ""
            raise refuse(given, f"; write {self.looks}{quotes}")
        if self.pattern and not self.matches(given):
            raise refuse(given, f"; write {self.looks}")
        return given

    def matches(self, given: str) -> bool:
        return re.fullmatch(self.pattern, given) is not None

    @property
    def allowed(self) -> str:
        return " or ".join(self.options) or self.looks

    def json_schema(self) -> dict[str, Any]:
        return {"enum": list(self.options)} if self.options else {"type": "string", "minLength": 1}


class Sentence(Reader[str | None]):
    """One line of text, or ``none``."""

    none = True

    @property
    def allowed(self) -> str:
        return "a sentence, or none"

    def read(self, given: object) -> str | None:
        return None if given in (None, "none") else Word(looks=self.allowed).read(given)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [Word().json_schema(), {"type": "null"}]}


NAME = Word(
    pattern=r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}",
    looks="a short name of letters, digits, dot, _ and -",
)
LABEL = Word(
    pattern=r"[A-Za-z0-9_]([A-Za-z0-9._ -]{0,98}[A-Za-z0-9._-])?",
    looks="letters, digits, blank, dot, _ and -",
)
