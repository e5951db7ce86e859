"""Text for LaTeX: escaped, in bold, in rows of a tabular."""

from __future__ import annotations

from reports.run_data.statistics.metrics import RHO

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
    "|": r"\textbar{}",
    "±": r"$\pm$",
    DASH: "--",
    RHO: r"$\rho$",
    "Σ": r"$\Sigma$",
    "·": r"$\cdot$",
    "\u2009": r"\,",
}


def latex_text(text: str) -> str:
    return "".join(LATEX.get(char, char) for char in one_line(text))


def one_line(text: str) -> str:
    return " ".join(text.splitlines())  # split() would take the thin spaces, too


def latex_bold(cell: str) -> str:
    """The mean in bold, the interval as it is."""
    mean, sign, half = cell.partition(" $\\pm$ ")
    return rf"\textbf{{{mean}}}{sign}{half}"


def latex_row(cells: list[str]) -> str:
    # the end of the row before it would take these: \\[length], \\*
    guard = "{}" if cells[0].lstrip().startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"
