"""Values that differ between devices, the receiver noise, and the method with its parameters."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from edgesim.errors import RELATIVE
from edgesim.scenario.documents.scalars import scalar
from edgesim.scenario.fields import PLAIN, Quantity
from edgesim.scenario.section import Reader, ValueRefusedError, one_key_of, refuse
from edgesim.scenario.units import format_quantity, unit_pattern
from fl.regular_files import read_regular

KINDS = ("uniform", "choice", "trace")
MAX_TRACE_VALUES = 100_000  # each is written out in scenario.yaml of a run, which takes a while
MAX_TRACE_BYTES = 16 << 20
MAX_TRACE_LINE = 100  # letters


@dataclass(frozen=True)
class Draw:
    """How the devices of a class get a value.

    Args:
        kind: "constant": values holds one; "list": one per device, in order; "uniform": values are
            lower and upper bound; "choice": each device draws one of the values; "trace": device i
            takes values[i], further values are not used.
        values: in SI.
    """

    kind: Literal["constant", "list", "uniform", "choice", "trace"]
    values: tuple[float, ...]


def constant(value: float) -> Draw:
    return Draw("constant", (float(value),))


@dataclass(frozen=True)
class PerDevice(Reader[Draw]):
    """One value, a list, or {uniform: [a, b]}, {choice: [...]}, {trace: file.csv}."""

    each: Quantity

    @property
    def unit(self) -> str:
        return self.each.unit

    def read_in(self, folder: Path, given: object) -> Draw:
        if isinstance(given, list):
            return Draw("list", self._several(given))
        if not isinstance(given, dict):
            return constant(self.each.number(given))
        if len(given) != 1 or next(iter(given)) not in KINDS:
            shown = "{" + ", ".join(str(key)[:20] for key in given)[:60] + "}"
            problem = "; a distribution has one of the keys uniform, choice, trace"
            raise ValueRefusedError(problem, shown)
        ((kind, values),) = given.items()
        if kind == "trace" and isinstance(values, str) and "\x00" not in values:
            return Draw("trace", self._trace(folder / values, values))
        if not isinstance(values, list):
            raise refuse(values, "; write a list such as [1, 2], with units", kind)
        numbers = self._several(values, kind)
        if kind == "uniform" and (len(numbers) != 2 or numbers[0] > numbers[1]):
            more = [] if len(values) < 4 else ["..."]
            shown = "[" + ", ".join([*map(str, values[:3]), *more]) + "]"
            raise ValueRefusedError("; write two values, the smaller one first", shown, [kind])
        return Draw(kind, numbers)

    def _several(self, given: list, *keys: str) -> tuple[float, ...]:
        if not given:
            raise ValueRefusedError("; write at least one value", "an empty list", keys)
        numbers = []
        for i, item in enumerate(given):
            try:
                numbers.append(self.each.number(item))
            except ValueRefusedError as problem:
                raise problem.below(*keys, i) from None
        return tuple(numbers)

    def _trace(self, path: Path, name: str) -> tuple[float, ...]:
        """One value per line; empty lines and lines that start with # are skipped."""
        try:
            text = read_regular(path, MAX_TRACE_BYTES).decode("utf-8")
            return self._numbers(io.StringIO(text, newline=None), name)
        except UnicodeDecodeError:
            problem = "; the file is not UTF-8 text"
        except OSError as error:
            reason = error.strerror or "unreadable"
            problem = f"; the file cannot be read ({reason}); {RELATIVE}"
        raise refuse(name, problem, "trace")

    def _numbers(self, lines: Iterable[str], name: str) -> tuple[float, ...]:
        numbers: list[float] = []
        for count, line in enumerate(lines, 1):
            text = line.strip()
            if text and not text.startswith("#"):
                try:
                    if len(text) > MAX_TRACE_LINE:
                        raise refuse(text, "; write one value per line")
                    numbers.append(self.each.number(scalar(text) if self.unit == PLAIN else text))
                except ValueRefusedError as problem:
                    raise problem.below("trace", note=f" ({name}, line {count})") from None
            if len(numbers) > MAX_TRACE_VALUES:
                raise refuse(name, f"; a trace has at most {MAX_TRACE_VALUES} values", "trace")
        if not numbers:
            raise refuse(name, "; the file holds no value, write one per line", "trace")
        return tuple(numbers)

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
        forms = {
            "uniform": {**several, "minItems": 2, "maxItems": 2},
            "choice": several,
            "trace": {"anyOf": [{"type": "string"}, several]},
        }
        return {"anyOf": [one, several, *one_key_of(forms)]}


def per_device(
    unit: str, low: float = 0.0, high: float = math.inf, above: bool = True
) -> PerDevice:
    """The reader of a `Quantity` per device."""
    return PerDevice(Quantity(unit, low, high, above))


@dataclass(frozen=True)
class Noise:
    """Receiver noise: a fixed power, Liu (9), or a density over the band in use; one is set."""

    power_w: float | None = None
    density_w_per_hz: float | None = None


class NoiseReader(Reader[Noise]):
    """``-110 dBm`` is a power, ``-174 dBm/Hz`` a density."""

    unit = "W or W/Hz"
    allowed = "a power such as -110 dBm, or a density such as -174 dBm/Hz"

    def read(self, given: object) -> Noise:
        if isinstance(given, str) and "/" in given:
            return Noise(density_w_per_hz=Quantity("W/Hz").number(given))
        return Noise(power_w=Quantity("W").number(given))

    def write(self, value: Noise) -> str:
        if value.density_w_per_hz is not None:
            return format_quantity(value.density_w_per_hz, "W/Hz")
        return Quantity("W").write(value.power_w)

    def json_schema(self) -> dict[str, Any]:
        kinds = [{"type": "string", "pattern": unit_pattern(unit)} for unit in ("W", "W/Hz")]
        return {"anyOf": kinds, "description": self.allowed}


@dataclass(frozen=True)
class MethodSpec:
    """Which method, and its own parameters as written; the method checks them."""

    name: str
    params: dict[str, int | float | bool | str | list[float]] = field(default_factory=dict)


class MethodReader(Reader[MethodSpec]):
    """``fedavg``, or {name: liu, personal_steps: 5, ...}."""

    what, listed, example = "method", "methods", "{name: liu, personal_steps: 5}"

    @property
    def allowed(self) -> str:
        return f"a name, or {{name: ..., parameters of the {self.what}}}; see {self._list}"

    @property
    def _list(self) -> str:
        return f"edgesim list {self.listed}"

    def read(self, given: object) -> MethodSpec:
        given = {"name": given} if isinstance(given, str) else given
        if not isinstance(given, dict) or "name" not in given:
            problem = f"; write a mapping with the {self.what}'s name, for instance {self.example}"
            raise refuse(given, problem)
        name, params = given["name"], {key: value for key, value in given.items() if key != "name"}
        if not isinstance(name, str) or not name.strip():
            raise refuse(name, f"; write the name of a {self.what}, see {self._list}", "name")
        for key, value in params.items():
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, int | float | bool | str):
                    problem = "; write a number, a list of numbers, true, false or a word"
                    raise refuse(value, problem, key)
                if isinstance(one, float) and not math.isfinite(one):
                    raise refuse(value, " (not finite); write a finite number", key)
        return MethodSpec(name, params)

    def write(self, value: MethodSpec) -> dict[str, Any]:
        return {"name": value.name, **value.params}

    def json_schema(self) -> dict[str, Any]:
        spec = {
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 1}},
            "required": ["name"],
            "additionalProperties": {"type": ["number", "boolean", "string", "array"]},
        }
        return {"anyOf": [{"type": "string", "minLength": 1}, spec]}


class SelectionReader(MethodReader):
    """``uniform``, or {name: tifl, tiers: 5}."""

    what, listed, example = "selection rule", "selection", "{name: tifl, tiers: 5}"

    def write(self, value: MethodSpec) -> Any:
        return super().write(value) if value.params else value.name
