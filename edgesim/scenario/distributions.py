"""Values that differ between devices, and the other values with a shape of their own: noise, method, lists of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic_core import PydanticCustomError

from edgesim.scenario.fields import PLAIN, Quantity, Reader, Shown, refuse
from edgesim.scenario.units import format_quantity, unit_pattern
from edgesim.scenario.yaml_locations import scalar

KINDS = ("uniform", "choice", "trace")
MAX_TRACE_LINES = 10_000_000


@dataclass(frozen=True)
class Draw:
    """How the devices of a class get a value, in SI.

    kind: "constant" (values holds one), "list" (one per device, in order), "uniform" (values = lower, upper bound),
    "choice" (each device draws one of values), "trace" (device i takes values[i]; further values are not used).
    """

    kind: Literal["constant", "list", "uniform", "choice", "trace"]
    values: tuple[float, ...]


def constant(value: float) -> Draw:
    return Draw("constant", (float(value),))


@dataclass(frozen=True)
class Spread(Reader):
    """A quantity per device: one value, a list, or {uniform: [a, b]}, {choice: [...]}, {trace: file.csv}."""

    each: Quantity

    @property
    def unit(self) -> str:
        return self.each.unit

    def read(self, given: Any, folder: Path) -> Draw:
        if isinstance(given, list):
            return Draw("list", self._several(given))
        if isinstance(given, dict):
            return self._distribution(given, folder)
        return Draw("constant", (self.each.read(given, folder),))

    def _distribution(self, given: dict, folder: Path) -> Draw:
        if len(given) != 1 or next(iter(given)) not in KINDS:
            shown = Shown("{" + ", ".join(str(key)[:20] for key in given)[:60] + "}")
            raise refuse(shown, "; a distribution has one of the keys uniform, choice, trace")
        kind, values = next(iter(given.items()))
        if kind == "trace" and isinstance(values, str) and "\x00" not in values:
            return Draw("trace", self._trace(folder / values, values))
        if not isinstance(values, list):
            raise refuse(values, "; write a list such as [1, 2], with units", kind)
        read = self._several(values, kind)
        if kind == "uniform" and (len(read) != 2 or read[0] > read[1]):
            shown = Shown(
                "[" + ", ".join(map(str, values[:3])) + ("]" if len(values) < 4 else ", ...]")
            )
            raise refuse(shown, "; write two values, the smaller one first", kind)
        return Draw(kind, read)

    def _several(self, given: list, *keys: str) -> tuple[float, ...]:
        if not given:
            raise refuse(Shown("an empty list"), "; write at least one value", *keys)
        return tuple(self._one(item, *keys, i) for i, item in enumerate(given))

    def _one(self, item: Any, *keys: str | int) -> float:
        try:
            return self.each.read(item, Path())
        except PydanticCustomError as problem:
            raise refuse(Shown(problem.context["given"]), problem.context["rest"], *keys) from None

    def _trace(self, file: Path, name: str) -> tuple[float, ...]:
        """One value with unit per line; empty lines and lines that start with # are skipped."""
        try:
            with open(file, encoding="utf-8") as lines:
                return self._lines(lines, name)
        except UnicodeDecodeError:
            raise refuse(name, "; the file is not UTF-8 text", "trace") from None
        except OSError as problem:
            reason = problem.strerror or "unreadable"
            raise refuse(
                name,
                f"; the file cannot be read ({reason}), a path is relative to the scenario",
                "trace",
            ) from None

    def _lines(self, lines: Any, name: str) -> tuple[float, ...]:
        values: list[float] = []
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text and not text.startswith("#"):
                values.append(self._line(text, f"{name}, line {number}"))
            if len(values) > MAX_TRACE_LINES:
                raise refuse(name, f"; a trace has at most {MAX_TRACE_LINES} values", "trace")
        if not values:
            raise refuse(name, "; the file holds no value, write one per line", "trace")
        return tuple(values)

    def _line(self, text: str, place: str) -> float:
        try:
            return self.each.read(scalar(text) if self.unit == PLAIN else text, Path())
        except PydanticCustomError as problem:
            raise refuse(
                Shown(problem.context["given"]), f"{problem.context['rest']} ({place})", "trace"
            ) from None

    def write(self, value: Draw) -> Any:
        written = [self.each.write(item) for item in value.values]
        if value.kind == "constant":
            return written[0]
        return written if value.kind == "list" else {value.kind: written}

    @property
    def allowed(self) -> str:
        return f"{self.each.allowed}; also a list per device, or uniform, choice, trace"

    def json_schema(self) -> dict[str, Any]:
        one = self.each.json_schema()
        several = {"type": "array", "items": one, "minItems": 1}
        pair = {**several, "minItems": 2, "maxItems": 2}
        forms = {
            "uniform": pair,
            "choice": several,
            "trace": {"anyOf": [{"type": "string"}, several]},
        }
        objects = [
            {
                "type": "object",
                "properties": {kind: form},
                "required": [kind],
                "additionalProperties": False,
            }
            for kind, form in forms.items()
        ]
        return {"anyOf": [one, several, *objects]}


@dataclass(frozen=True)
class Noise:
    """Receiver noise: a fixed power, Liu (9), or a density over the band in use. Exactly one is set."""

    power_w: float | None = None
    density_w_per_hz: float | None = None


@dataclass(frozen=True)
class NoiseReader(Reader):
    """``-110 dBm`` is a power, ``-174 dBm/Hz`` a density."""

    unit = "W or W/Hz"
    allowed = "a power such as -110 dBm, or a density such as -174 dBm/Hz"

    def read(self, given: Any, folder: Path) -> Noise:
        if isinstance(given, str) and given.rstrip().endswith("/Hz"):
            return Noise(density_w_per_hz=Quantity("W/Hz").read(given, folder))
        return Noise(power_w=Quantity("W").read(given, folder))

    def write(self, value: Noise) -> str:
        if value.power_w is not None:
            return format_quantity(value.power_w, "W")
        return format_quantity(value.density_w_per_hz, "W/Hz")

    def json_schema(self) -> dict[str, Any]:
        kinds = [{"type": "string", "pattern": unit_pattern(unit)} for unit in ("W", "W/Hz")]
        return {"anyOf": kinds, "description": self.allowed}


@dataclass(frozen=True)
class MethodSpec:
    """Which method, and its own parameters as written; the method checks them."""

    name: str
    params: dict[str, int | float | bool | str | list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class MethodReader(Reader):
    """``fedavg``, or {name: liu, personal_steps: 5, ...}."""

    allowed = "a name, or {name: ..., parameters of the method}; see edgesim list methods"

    def read(self, given: Any, folder: Path) -> MethodSpec:
        given = {"name": given} if isinstance(given, str) else given
        if not isinstance(given, dict) or "name" not in given:
            raise refuse(
                given,
                "; write a mapping with the method's name, for instance {name: liu, personal_steps: 5}",
            )
        name, params = given["name"], {key: value for key, value in given.items() if key != "name"}
        if not isinstance(name, str) or not name.strip():
            raise refuse(name, "; write the name of a method, see edgesim list methods", "name")
        for key, value in params.items():
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, int | float | bool | str):
                    raise refuse(
                        value, "; write a number, a list of numbers, true, false or a word", key
                    )
                if isinstance(one, float) and not math.isfinite(one):
                    raise refuse(value, " (not finite); write a finite number", key)
        return MethodSpec(name, params)

    def write(self, value: MethodSpec) -> dict[str, Any]:
        return {"name": value.name, **value.params}

    def json_schema(self) -> dict[str, Any]:
        scalar = {"type": ["number", "boolean", "string", "array"]}
        spec = {
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 1}},
            "required": ["name"],
            "additionalProperties": scalar,
        }
        return {"anyOf": [{"type": "string", "minLength": 1}, spec]}


@dataclass(frozen=True)
class NumberList(Reader):
    """A list of plain numbers between bounds, the bounds themselves included where ``closed``."""

    what: str
    low: float = 0.0
    high: float = 1.0
    closed: bool = False

    @property
    def allowed(self) -> str:
        return f"a list of {self.what}, each {self._bounds}"

    @property
    def _bounds(self) -> str:
        if self.closed:
            return f"at least {self.low:g} and at most {self.high:g}"
        return f"more than {self.low:g} and less than {self.high:g}"

    def read(self, given: Any, folder: Path) -> tuple[float, ...]:
        if not isinstance(given, list):
            raise refuse(given, "; write a list such as [0.8, 0.9]")
        if self.closed and not given:
            raise refuse(Shown("an empty list"), "; write at least one value")
        for i, item in enumerate(given):
            number = isinstance(item, int | float) and not isinstance(item, bool)
            at_bound = number and item in (self.low, self.high)
            if not number or not (self.low < item < self.high or (at_bound and self.closed)):
                raise refuse(item, f"; allowed is {self._bounds}", i)
        return tuple(map(float, given))

    def write(self, value: tuple[float, ...]) -> list[float]:
        return list(value)

    def json_schema(self) -> dict[str, Any]:
        names = ("minimum", "maximum") if self.closed else ("exclusiveMinimum", "exclusiveMaximum")
        bounds = dict(zip(names, (self.low, self.high), strict=True))
        return {"type": "array", "items": {"type": "number", **bounds}}
