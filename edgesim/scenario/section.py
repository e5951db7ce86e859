"""What all sections of a scenario are made of: a field with its documentation, and the frozen section."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticUndefined, core_schema

from edgesim.scenario.distributions import Spread
from edgesim.scenario.fields import Quantity, refuse

OURS = "our choice"
PER_SECTION = "the defaults of the keys in this section"


def key(
    name: str, meaning: str, example: Any = None, default: Any = PydanticUndefined, source: str = ""
) -> Any:
    """A field: its YAML key, what it means, an example, and for a default where that default comes from."""
    extra = {"source": source} if source else {}
    return Field(
        alias=name,
        description=meaning,
        default=default,
        json_schema_extra={**extra, "example": example},
    )


def spread(unit: str, low: float = 0.0, high: float = float("inf"), above: bool = True) -> Spread:
    return Spread(Quantity(unit, low, high, above))


class Part(BaseModel):
    """A section: immutable, and every key must be known."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class OrWord:
    """``downlink: ideal`` for ``downlink: {mode: ideal}``."""

    def __init__(self, word: str, key: str, example: str):
        self.word, self.key, self.example = word, key, example

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        def expand(given: Any) -> Any:
            if given == self.word:
                return {self.key: given}
            if not isinstance(given, dict | BaseModel):
                raise refuse(given, f"; write {self.word} or {self.example}")
            return given

        return core_schema.no_info_before_validator_function(expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": self.word}, handler(schema)]}
