"""Tables as CSV in full precision, as LaTeX, as Markdown, and as rounded cells for the page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reports.run_data.metrics import RHO

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
    """One column of a table.

    name: header of the CSV, with the unit.     title: header elsewhere.     show: value -> text.
    number: aligned to the right.     printed: in the LaTeX table, too, which has to fit a page.
    """

    name: str
    title: str
    show: Callable[[Any], str] = str
    number: bool = True
    printed: bool = True


SCHEME = Column("scheme", "Scheme", number=False)


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
            [DASH if _is_empty(v) else c.show(v) for c, v in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    def filled(self) -> list[int]:
        """Indices of the columns with at least one value: what the page shows."""
        indices = range(len(self.columns))
        return [i for i in indices if any(not _is_empty(row[i]) for row in self.rows)]

    def csv(self) -> str:
        """Full precision; an empty field where there is no value."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows([[_full_precision(value) for value in row] for row in self.rows])
        return out.getvalue()

    def markdown(self) -> str:
        """A pipe table of the rounded cells, numbers to the right."""
        kept = self.filled()
        columns = [self.columns[i] for i in kept]
        titles = [column.title for column in columns]
        rule = ["---:" if column.number else "---" for column in columns]
        rows = [titles, rule, *[[cells[i] for i in kept] for cells in self.cells()]]
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
            _latex_row([self.columns[i].title for i in kept]),
            r"\midrule",
            *[_latex_row([cells[i] for i in kept]) for cells in self.cells()],
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"


def _latex_row(cells: list[str]) -> str:
    return " & ".join("".join(LATEX.get(char, char) for char in cell) for cell in cells) + r" \\"


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _full_precision(value: Any) -> Any:
    if _is_empty(value):
        return ""
    return repr(float(value)) if isinstance(value, float) else value


def decimals(n: int, scale: float = 1.0) -> Callable[[float], str]:
    """Fixed decimals after scaling, e.g. decimals(1, 1e3) shows seconds as milliseconds."""
    return lambda value: f"{value * scale:.{n}f}"


def significant(n: int, scale: float = 1.0) -> Callable[[float], str]:
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
