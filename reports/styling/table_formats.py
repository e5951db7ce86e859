"""Tables as CSV in full precision, as LaTeX, as Markdown, and as rounded cells for the page."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgesim.results.flat_scenario import NONE
from reports.run_data.statistics.seed_intervals import ROUNDING, overlap
from reports.styling.latex_text import DASH, latex_bold, latex_row, latex_text, one_line
from reports.styling.number_formats import (
    MEAN_COUNT,
    THIN,
    NumberFormat,
    half_interval,
    shortest,
)

# what ends a cell, or is emphasis, code, a link, HTML or a formula; an underscore in a word is none
MARKDOWN = re.compile(r"[\\|*`<\[~$]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    name: header of the CSV, with the unit.     title: header elsewhere.     show: value -> text.
    number: aligned to the right.     printed: in the LaTeX table, too, which has to fit a page.
    half_of: name of the column of means whose 95 % interval this one halves; its numbers stand
    behind theirs everywhere but in the CSV.     best: "max" or "min" where one is better.
    wide: share of the width of the text that long cells may fill in LaTeX, in lines; 0: one line.
    """

    name: str
    title: str
    show: Callable[[Any], str] = str
    number: bool = True
    printed: bool = True
    half_of: str = ""
    best: str = ""
    wide: float = 0.0

    @property
    def alignment(self) -> str:
        """How LaTeX sets it."""
        return rf"p{{{self.wide:g}\linewidth}}" if self.wide else "r" if self.number else "l"


@dataclass(frozen=True)
class Table:
    """``rows`` hold raw values in column order; None and nan mean that there is no value.

    grouped_by: names of columns; the best is that among the rows with the same values there.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    grouped_by: tuple[str, ...] = ()

    def cells(self, most: int | None = None) -> list[list[str]]:
        """Rounded text with half the interval unless it is zero, a dash where there is no value.

        Args:
            most: so many rows from the first one; None: all.
        """
        halves = {c.half_of: i for i, c in enumerate(self.columns) if c.half_of}
        return [
            [self._cell(row, i, halves.get(c.name)) for i, c in enumerate(self.columns)]
            for row in self.rows[:most]
        ]

    def _cell(self, row: tuple[Any, ...], i: int, half: int | None) -> str:
        if _is_empty(row[i]):
            return DASH
        show = self.columns[i].show
        text = show(row[i])
        if half is None or _is_empty(row[half]) or row[half] <= ROUNDING * abs(row[i]):
            return text
        if "e" in text or text == "0" or not isinstance(show, NumberFormat):
            return f"{text} ± {self.columns[half].show(row[half])}"
        return _with_half(text, row[i] * show.scale, row[half] * show.scale)

    def filled(self) -> list[int]:
        """Indices of the columns with at least one value: what the page shows."""
        indices = range(len(self.columns))
        return [
            i
            for i in indices
            if not self.columns[i].half_of and any(not _is_empty(row[i]) for row in self.rows)
        ]

    def best(self) -> frozenset[tuple[int, int]]:
        """(row, column) of the best means of each group of rows, among those with an interval.

        With them those that look equal, or whose 95 % intervals overlap that of the best one;
        none where these are all.
        """
        names = [column.name for column in self.columns]
        group = [names.index(name) for name in self.grouped_by]
        halves = {c.half_of: i for i, c in enumerate(self.columns) if c.half_of}
        found = set()
        for i, column in enumerate(self.columns):
            half = halves.get(column.name)
            groups: dict[Any, list[int]] = {}
            for r, row in enumerate(self.rows if column.best else ()):
                if not _is_empty(row[i if half is None else half]):
                    groups.setdefault(tuple(row[g] for g in group), []).append(r)
            for members in groups.values():
                choose = max if column.best == "max" else min
                best = self.rows[choose(members, key=lambda r: self.rows[r][i])]
                alike = [r for r in members if self._is_alike(self.rows[r], best, i, half)]
                found |= {(r, i) for r in alike} if len(alike) < len(members) else set()
        return frozenset(found)

    def _group_text(self) -> str:
        titles = [column.title for column in self.columns if column.name in self.grouped_by]
        return f" among lines of the same {' and '.join(map(one_line, titles))}" * bool(titles)

    def _is_alike(self, row: tuple, best: tuple, i: int, half: int | None) -> bool:
        """Does a mean look like the best one, or may it be as good?"""
        shown, of_best = (self._cell(each, i, half).partition(" ± ")[0] for each in (row, best))
        if shown == of_best:
            return True
        return half is not None and overlap(row[i], row[half], best[i], best[half])

    def sort_value(self, row: int, column: int) -> str:
        """By what the page sorts a cell of numbers: in full precision, empty without a number."""
        value = self.rows[row][column]
        return "" if value == NONE else str(_full_precision(value)).replace("inf", "Infinity")

    def csv(self) -> str:
        """Full precision; an empty field where there is no value."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows([[_full_precision(value) for value in row] for row in self.rows])
        return out.getvalue()

    def markdown(self) -> str:
        """A pipe table of the rounded cells, numbers to the right, the best in bold."""
        kept, best = self.filled(), self.best()
        titles = [self.columns[i].title for i in kept]
        rule = ["---:" if self.columns[i].number else "---" for i in kept]
        texts = [[(i, _markdown(cells[i])) for i in kept] for cells in self.cells()]
        rows = [
            [f"**{text}**" if (r, i) in best else text for i, text in row]
            for r, row in enumerate(texts)
        ]
        lines = [f"| {' | '.join(row)} |" for row in ([*map(_markdown, titles)], rule, *rows)]
        return "\n".join([_markdown(" ".join(self.caption.split())), "", *lines]) + "\n"

    def latex(self) -> str:
        """A booktabs tabular; all text escaped, the best in bold."""
        kept = [i for i, c in enumerate(self.columns) if c.printed and not c.half_of]
        best = self.best()
        align = "".join(self.columns[i].alignment for i in kept)
        texts = [[(i, latex_text(cells[i])) for i in kept] for cells in self.cells()]
        rows = [
            [latex_bold(text) if (r, i) in best else text for i, text in row]
            for r, row in enumerate(texts)
        ]
        lines = [
            f"% {' '.join(self.caption.split())}",
            *[
                f"% Bold: the best mean of each column{self._group_text()}, and those whose 95 % "
                "intervals overlap its."
            ]
            * bool(best),
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            latex_row([latex_text(self.columns[i].title) for i in kept]),
            r"\midrule",
            *map(latex_row, rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    return MARKDOWN.sub(r"\\\g<0>", one_line(text))


def _with_half(text: str, mean: float, half: float) -> str:
    """A mean and half its interval, which has its decimals; a mean without takes those of an
    interval below 10.
    """
    places = len(text.partition(".")[2])
    if not places and half < 10:
        places = len(MEAN_COUNT(half).partition(".")[2])
        text = f"{mean:,.{places}f}".replace(",", THIN) if places else text
    return f"{text} ± {half_interval(half, places)}"


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _full_precision(value: Any) -> Any:
    if _is_empty(value):
        return ""
    return repr(float(value)) if isinstance(value, float) else value


SCHEME = Column("scheme", "Scheme", number=False)
TARGET = Column("target_accuracy", "Target (%)", shortest(100))
