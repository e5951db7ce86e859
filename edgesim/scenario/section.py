"""Base of the sections of a scenario, their fields with documentation, and how values are refused.

A refused value is a `ValueRefusedError`, which knows neither file nor line: validation.py adds
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, core_schema

from edgesim.errors import EdgesimError, shorten

Value = TypeVar("Value")
OURS = "our choice"
PER_SECTION = "the defaults of the keys in this section"


class ValueRefusedError(EdgesimError, ValueError):
    """A value that its key does not allow; a ValueError, so that pydantic adds the key's path.

    Args:
        problem: the sentence after key and value, such as ``; allowed is more than 0``.
        shown: the value as the sentence shows it; None: the problem follows the key directly.
        keys: path from the field to the part that is wrong.
    """

    def __init__(self, problem: str, shown: str | None = None, keys: Sequence[str | int] = ()):
        super().__init__(f"{shown or ''}{problem}")
        self.problem, self.shown, self.keys = problem, shown, tuple(keys)

    def below(self, *keys: str | int, note: str = "") -> ValueRefusedError:
        """The same for a part of a value, which lies at these keys."""
        return ValueRefusedError(self.problem + note, self.shown, (*keys, *self.keys))


def one_key_of(forms: dict[str, Any]) -> list[dict[str, Any]]:
    """JSON schemas of the mappings with exactly one of these keys, by the form of its value."""
    return [
        {
            "type": "object",
            "properties": {key: form},
            "required": [key],
            "additionalProperties": False,
        }
        for key, form in forms.items()
    ]


def refuse(given: object, problem: str, *keys: str | int) -> ValueRefusedError:
    """The error about a value as it was given."""
    return ValueRefusedError(problem, shorten(given), keys)


class Reader(Generic[Value]):
    """How the value of a key is checked, converted to SI and written back.

    A reader stands in the type of a field, ``Annotated[float, Quantity("Hz")]``: pydantic finds it
    there by its hooks.

    unit: the SI unit of the result, None for words and counts.
    allowed: what may be given, as a part of a sentence.
    none: may ``none`` be given?
    """

    none: bool = False

    @property
    def unit(self) -> str | None:
        return None

    @property
    def allowed(self) -> str:
        raise NotImplementedError

    def read(self, given: object) -> Value:
        raise NotImplementedError

    def read_in(self, folder: Path, given: object) -> Value:
        """`read`, where a value may name a file: its path is relative to the scenario."""
        return self.read(given)

    def write(self, value: Any) -> Any:
        return "none" if value is None and self.none else value

    def json_schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        def check(given: object, info: core_schema.ValidationInfo) -> Value:
            return self.read_in((info.context or {}).get("folder", Path()), given)

        return core_schema.with_info_plain_validator_function(check)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return self.json_schema()


def reader_of(field: FieldInfo) -> Reader | None:
    """The reader in the type of a field; None where the field holds a section."""
    return next((part for part in field.metadata if isinstance(part, Reader)), None)


def is_written(field: FieldInfo, value: object) -> bool:
    """Whether a resolved scenario has the key: not where a later key has its default."""
    extra = field.json_schema_extra
    return not (isinstance(extra, dict) and "written" in extra and value == field.default)


def yaml_key(name: str) -> str:
    """The key of a field: its name without the SI unit at its end."""
    return re.sub(r"_(hz|s|m|w|j|c|k|db|deg|bps|m_per_s|k_per_w|j_per_k)$", "", name)


def key(
    meaning: str,
    example: JsonValue,
    default: Any = PydanticUndefined,
    source: str = "",
    written: bool = True,
) -> Any:  # the type of the field that it stands for
    """A field of a section.

    Args:
        meaning: what the key means, as ``edgesim explain`` prints it.
        example: a value as one would write it.
        default: in SI; left out: the key must be given.
        source: where the default comes from.
        written: the default is written into a run's folder and part of the scenario's digest. Keys
            that were added later are not, so that the digests of older scenarios stay.
    """
    extra: dict[str, JsonValue] = {"source": source} if source else {}
    extra |= {} if written else {"written": False}
    extra["example"] = example
    return Field(description=meaning, default=default, json_schema_extra=extra)


class Section(BaseModel):
    """A section: immutable, every key must be known, field names end in the SI unit."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, alias_generator=yaml_key
    )


class WordOrSection:
    """In the type of a field: ``downlink: ideal`` stands for ``downlink: {mode: ideal}``.

    Args:
        word: the word.
        key: the key of the section that it sets.
        example: the section as one would write it with another value of the key.
    """

    def __init__(self, word: str, key: str, example: str):
        self.word, self.key, self.example = word, key, example

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        def expand(given: object) -> object:
            if given == self.word:
                return {self.key: given}
            if not isinstance(given, dict | BaseModel):
                raise refuse(given, f"; write {self.word} or {self.example}")
            return given

        return core_schema.no_info_before_validator_function(expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": self.word}, handler(schema)]}


class NoneOrSection:
    """In the type of a field that may lack: ``power_control: none`` stands for no section."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        def expand(given: object) -> object:
            return None if given == "none" else given

        return core_schema.no_info_before_validator_function(expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": "none"}, handler(schema)]}


@cache
def fields_of(section: type[Section]) -> list[tuple[str, FieldInfo, Reader | None]]:
    """Name, field and reader of every key of a section."""
    return [(name, field, reader_of(field)) for name, field in section.model_fields.items()]
