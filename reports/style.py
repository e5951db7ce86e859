"""House style of the figures: one fixed colour and marker per scheme, colour-blind safe (Okabe and Ito, 2008)."""

from __future__ import annotations

from dataclasses import dataclass

from reports import paper
from reports.schemes import Scheme

COLUMN_IN, PAGE_IN = 3.5, 7.4  # widths: an IEEE column, and the page
ROLE_LOOK = {
    paper.JOINT: ("#0072B2", "o"),
    paper.EQUAL: ("#E69F00", "s"),
    paper.PRUNING: ("#009E73", "^"),
    paper.PERSONAL: ("#CC79A7", "D"),
    paper.REFERENCE: ("#4D4D4D", "v"),
}
OTHER_LOOK = (("#D55E00", "P"), ("#56B4E9", "X"), ("#8C6D31", "<"), ("#882255", ">"), ("#999933", "*"))
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
PHASE_COLOURS = {
    "download": "#9A9A9A",
    "personal": "#CC79A7",
    "warm-up": "#F0E442",
    "global": "#009E73",
    "train": "#E69F00",
    "upload": "#0072B2",
    "idle": "#E8E8E8",
}
OTHER_PHASES = ("#56B4E9", "#D55E00", "#882255", "#999933")
THRESHOLD = "#B3261E"
RHO = "\N{GREEK SMALL LETTER RHO}"
INK, QUIET, GRID = "#222222", "#666666", "#DDDDDD"


@dataclass(frozen=True)
class Look:
    colour: str
    marker: str
    line: object


def looks(schemes: list[Scheme]) -> dict[str, Look]:
    """Label -> look. The schemes of the paper always look the same; the others take what is left, in order."""
    taken: dict[str, Look] = {}
    spare = [Look(colour, marker, line) for line in LINES for colour, marker in (*OTHER_LOOK, *ROLE_LOOK.values())]
    seen: set[str] = set()
    for scheme in schemes:
        if scheme.role and scheme.role not in seen:
            seen.add(scheme.role)
            taken[scheme.label] = Look(*ROLE_LOOK[scheme.role], "-")
    used = {(look.colour, look.line) for look in taken.values()}
    spare = [look for look in spare if (look.colour, look.line) not in used]
    rest = [scheme for scheme in schemes if scheme.label not in taken]
    for i, scheme in enumerate(rest):
        taken[scheme.label] = spare[i % len(spare)]
    return taken


def phase_colours(phases: list[str]) -> dict[str, str]:
    """Phase -> colour: the same one in every figure."""
    others = [phase for phase in phases if phase not in PHASE_COLOURS]
    spare = {phase: OTHER_PHASES[i % len(OTHER_PHASES)] for i, phase in enumerate(others)}
    return {phase: PHASE_COLOURS.get(phase) or spare[phase] for phase in phases}


def settings(wide: bool) -> dict[str, object]:
    """matplotlib rc settings. Text becomes paths in SVG, so that the page needs no font."""
    size = 9 if wide else 7.5
    return {
        "font.family": "DejaVu Sans",
        "font.size": size,
        "axes.titlesize": size,
        "axes.labelsize": size,
        "legend.fontsize": size - 0.5,
        "xtick.labelsize": size - 1,
        "ytick.labelsize": size - 1,
        "text.parse_math": False,
        "axes.edgecolor": QUIET,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.5,
        "text.color": INK,
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
        "lines.linewidth": 1.4 if wide else 1.1,
        "lines.markersize": 4.5 if wide else 3.2,
        "legend.frameon": False,
        "figure.dpi": 150,
        "savefig.dpi": 300,
        "pdf.fonttype": 42,
        "svg.fonttype": "path",
        "svg.hashsalt": "edgesim",
    }
