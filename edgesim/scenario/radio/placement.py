"""Where the devices of a class stand: the value of ``devices.position``."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgesim.errors import RELATIVE
from edgesim.scenario.fields import Quantity
from edgesim.scenario.section import Reader, ValueRefusedError, one_key_of, refuse
from edgesim.scenario.units import format_quantity, unit_pattern

FORMS = {  # kind -> how it is written
    "disc": "{disc: radius}",
    "ring": "{ring: [inner, outer]}",
    "hexagon": "{hexagon: distance of its corners}",
    "cells": "{cells: least distance to a site of network.layout}",
    "list": "{list: [[x, y], ...]}",
    "csv": "{csv: file with columns x_m and y_m}",
}
METRES = Quantity("m")
CLEARANCE = Quantity("m", high=1e5, above=False)
COORDINATE = Quantity("m", -1e7, 1e7, above=False)


@dataclass(frozen=True)
class Placement:
    """Where the devices of a class stand; the base station is at the origin.

    Args:
        kind: disc, ring, hexagon, cells of a layout (drawn uniformly), list or csv (one point per
            device).
        inner_m: inner radius of a ring, or least distance to a site, m.
        radius_m: outer radius, or distance of a hexagon's corners, m.
        points_m: (x, y) of each device of a list or file, m.
    """

    kind: str
    inner_m: float = 0.0
    radius_m: float = 0.0
    points_m: tuple[tuple[float, float], ...] = ()


class PlacementReader(Reader[Placement]):
    """{disc: r}, {ring: [r, r]}, {hexagon: r}, {cells: r}, {list: [[x, y], ...]}, {csv: file}.

    Args:
        kinds: which of them the key takes.
    """

    unit = "m"

    def __init__(self, kinds: tuple[str, ...] = tuple(FORMS)) -> None:
        self.kinds = kinds

    @property
    def allowed(self) -> str:
        *others, last = (FORMS[kind] for kind in self.kinds)
        return f"{', '.join(others)} or {last}"

    def read_in(self, folder: Path, given: object) -> Placement:
        if not isinstance(given, dict) or len(given) != 1 or next(iter(given)) not in self.kinds:
            raise refuse(given, f"; write {self.allowed}")
        ((kind, value),) = given.items()
        try:
            if kind == "csv":
                return Placement(kind, points_m=self._file(folder, value))
            if kind == "list":
                return Placement(kind, points_m=self._points(value))
            if kind == "ring":
                return Placement(kind, *self._ring(value))
            if kind == "cells":
                return Placement(kind, CLEARANCE.number(value))
            return Placement(kind, radius_m=METRES.number(value))
        except ValueRefusedError as problem:
            raise problem.below(kind) from None

    def _ring(self, value: object) -> tuple[float, float]:
        if not isinstance(value, list) or len(value) != 2:
            raise refuse(value, "; write two radii such as [35 m, 250 m]")
        inner, outer = Quantity("m", above=False).number(value[0]), METRES.number(value[1])
        if inner > outer:
            raise refuse(value[0], f"; the inner radius is at most the outer one, {value[1]}", 0)
        return inner, outer

    def _points(self, value: object) -> tuple[tuple[float, float], ...]:
        if not isinstance(value, list) or not value:
            raise refuse(value, "; write a list such as [[10 m, 20 m], [-5 m, 40 m]]")
        points = []
        for i, point in enumerate(value):
            if not isinstance(point, list) or len(point) != 2:
                raise refuse(point, "; write x and y such as [10 m, 20 m]", i)
            points.append((COORDINATE.number(point[0]), COORDINATE.number(point[1])))
        return tuple(points)

    def _file(self, folder: Path, value: object) -> tuple[tuple[float, float], ...]:
        if not isinstance(value, str) or not value or "\x00" in value:
            raise refuse(value, "; write the name of a file")
        try:
            with open(folder / value, encoding="utf-8", newline="") as lines:
                rows = csv.DictReader(lines)
                if not {"x_m", "y_m"} <= set(rows.fieldnames or ()):
                    raise refuse(value, "; its first line must name the columns x_m and y_m")
                points = tuple(self._row(row, value, i) for i, row in enumerate(rows, 2))
            if not points:
                raise refuse(value, "; it has no place below its first line")
            return points
        except UnicodeDecodeError:
            problem = "; the file is not UTF-8 text"
        except csv.Error as error:
            problem = f"; the file is no table ({error})"
        except OSError as error:
            reason = error.strerror or "unreadable"
            problem = f"; the file cannot be read ({reason}); {RELATIVE}"
        raise refuse(value, problem)

    def _row(self, row: dict[str, Any], name: str, line: int) -> tuple[float, float]:
        try:
            x, y = float(row["x_m"]), float(row["y_m"])
        except (TypeError, ValueError):
            x = y = math.nan
        if not (math.isfinite(x) and math.isfinite(y)):
            raise refuse(name, f"; its line {line} has no finite x_m and y_m")
        if not (COORDINATE.low <= min(x, y) and max(x, y) <= COORDINATE.high):
            problem = f"; in its line {line} x_m or y_m is beyond {COORDINATE.high:g} m"
            raise refuse(name, problem)
        return x, y

    def write(self, value: Placement | None) -> Any:
        if value is None:
            return None
        if value.kind == "ring":
            return {"ring": [format_quantity(r, "m") for r in (value.inner_m, value.radius_m)]}
        if value.kind in ("list", "csv"):
            return {"list": [[format_quantity(x, "m") for x in each] for each in value.points_m]}
        radius_m = value.inner_m if value.kind == "cells" else value.radius_m
        return {value.kind: format_quantity(radius_m, "m")}

    def json_schema(self) -> dict[str, Any]:
        length = {"type": "string", "pattern": unit_pattern("m")}
        pair = {"type": "array", "items": length, "minItems": 2, "maxItems": 2}
        forms = {
            "disc": length,
            "ring": pair,
            "hexagon": length,
            "cells": length,
            "list": {"type": "array", "items": pair, "minItems": 1},
            "csv": {"type": "string", "minLength": 1},
        }
        return {
            "anyOf": one_key_of({kind: forms[kind] for kind in self.kinds}),
            "description": self.allowed,
        }
