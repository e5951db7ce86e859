"""A table as CSV in full precision, as LaTeX with booktabs, as Markdown, and as rounded cells for the page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reports.styling.house_style import RHO

DASH = "\N{EN DASH}"
LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    DASH: "--",
    RHO: r"$\rho$",
    "·": r"$\cdot$",
    "\u2009": r"\,",
    "\n": " ",
}


@dataclass(frozen=True)
class Column:
    """name: CSV header, with the unit. title: for people. show: value -> text."""

    name: str
    title: str
    show: Callable[[Any], str] = str
    number: bool = True
    printed: bool = True  # in the LaTeX table, too, which has to fit a page


@dataclass(frozen=True)
class Table:
    """``rows`` hold raw values in column order; None and nan mean that there is no value."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    def cells(self) -> list[list[str]]:
        """Rounded text, a dash where there is no value."""
        return [
            [
                DASH if _nothing(value) else column.show(value)
                for column, value in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]

    def filled(self) -> list[int]:
        """Indices of the columns with at least one value: what the page shows."""
        return [
            i for i in range(len(self.columns)) if any(not _nothing(row[i]) for row in self.rows)
        ]

    def csv(self) -> str:
        """Full precision; an empty field where there is no value."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows(
            [["" if _nothing(value) else _plain(value) for value in row] for row in self.rows]
        )
        return out.getvalue()

    def markdown(self) -> str:
        """A pipe table of the rounded cells, numbers to the right."""
        kept = self.filled()
        rule = ["---:" if self.columns[i].number else "---" for i in kept]
        rows = [
            [self.columns[i].title for i in kept],
            rule,
            *[[cells[i] for i in kept] for cells in self.cells()],
        ]
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return "\n".join([" ".join(self.caption.split()), "", *lines]) + "\n"

    def latex(self) -> str:
        """A booktabs tabular; all text escaped."""
        kept = [i for i, column in enumerate(self.columns) if column.printed]
        align = "".join("r" if self.columns[i].number else "l" for i in kept)
        lines = [
            f"% {' '.join(self.caption.split())}",
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            _row([self.columns[i].title for i in kept]),
            r"\midrule",
            *[_row([cells[i] for i in kept]) for cells in self.cells()],
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return " & ".join(latex_escape(cell) for cell in cells) + r" \\"


def latex_escape(text: str) -> str:
    return "".join(LATEX.get(char, char) for char in text)


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> Any:
    return repr(float(value)) if isinstance(value, float) else value


def digits(n: int, scale: float = 1.0) -> Callable[[float], str]:
    """Fixed decimals after scaling, e.g. digits(1, 1e3) shows seconds as milliseconds."""
    return lambda value: f"{value * scale:.{n}f}"


def figures(n: int, scale: float = 1.0) -> Callable[[float], str]:
    """n significant figures, thousands apart, no exponent between 1e-4 and 1e9."""

    def show(value: float) -> str:
        value = float(f"{value * scale:.{n - 1}e}")
        if value == 0:
            return "0"
        if not 1e-4 <= abs(value) < 1e9:
            return f"{value:.{n - 1}e}"
        places = max(0, n - 1 - math.floor(math.log10(abs(value))))
        return f"{value:,.{places}f}".replace(",", "\u2009")

    return show
