"""House style of the figures: one fixed colour and marker per scheme, colour-blind safe (Okabe and Ito, 2008).

Two styles: `SCREEN` for the page and slides; `IEEE` for a column of a paper, 3.5 in wide and 8 pt, which must be
readable in grey: there every line has its own dashes and marker, and every kind of bar its own hatch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle

from reports.run_data import liu_claims as paper
from reports.run_data.schemes import Scheme

COLUMN_IN, PAGE_IN = 3.5, 7.4  # widths: an IEEE column, and the page
ROLE_LOOK = {
    paper.JOINT: ("#0072B2", "o"),
    paper.EQUAL: ("#E69F00", "s"),
    paper.PRUNING: ("#009E73", "^"),
    paper.PERSONAL: ("#CC79A7", "D"),
    paper.REFERENCE: ("#4D4D4D", "v"),
}
OTHER_LOOK = (
    ("#D55E00", "P"),
    ("#56B4E9", "X"),
    ("#8C6D31", "<"),
    ("#882255", ">"),
    ("#999933", "*"),
)
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
GREY_LINES = (
    *LINES,
    (0, (8, 2)),
    (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (1, 2.5)),
    (0, (10, 2, 2, 2)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
PHASE_COLOURS = {
    "download": "#9A9A9A",
    "personal": "#CC79A7",
    "warm-up": "#F0E442",
    "global": "#009E73",
    "train": "#E69F00",
    "upload": "#0072B2",
    "idle": "#E8E8E8",
    "waiting": "#E8E8E8",
}
OTHER_PHASES = ("#56B4E9", "#D55E00", "#882255", "#999933")
PHASE_HATCHES = {  # the same one in every figure; upload and idle are told apart by dark and light
    "download": "....",
    "personal": "////",
    "warm-up": "xxxxxx",
    "global": "\\\\\\\\",
    "train": "++++",
    "upload": "",
    "idle": "",
    "waiting": "",
    "uplink": "",
    "downlink": "....",
}
OTHER_HATCHES = ("----", "oooo", "||||", "**")
THRESHOLD = "#B3261E"
RHO = "\N{GREEK SMALL LETTER RHO}"
INK, QUIET, GRID = "#222222", "#666666", "#DDDDDD"


@dataclass(frozen=True)
class Style:
    """How figures look. Widths in inches, the size of all text and lines in points; grey: readable without colour."""

    name: str
    width_in: float
    size: float
    line: float
    marker: float
    grey: bool

    @property
    def wide(self) -> bool:
        """Room for two panels side by side."""
        return self.width_in > 5


SCREEN = Style("screen", PAGE_IN, 9.0, 1.4, 4.5, grey=False)
IEEE = Style("ieee", COLUMN_IN, 8.0, 1.1, 3.4, grey=True)
STYLES = {style.name: style for style in (SCREEN, IEEE)}


@dataclass(frozen=True)
class Look:
    colour: str
    marker: str
    line: object


def looks(schemes: list[Scheme], grey: bool = False) -> dict[str, Look]:
    """Label -> look. The schemes of the paper always look the same; the others take what is left, in order.

    The members of one series of a sweep share colour and marker and differ in their dashes; in grey, where colour says
    nothing, every line has dashes of its own as long as there are some left.
    """
    series = dict.fromkeys(scheme.series for scheme in schemes)
    if len(series) == 1 or len(series) == len(schemes):
        taken = _by_name({scheme.label: scheme.role for scheme in schemes})
    else:
        roles = {scheme.series: scheme.role for scheme in reversed(schemes)}
        shared = _by_name({name: roles[name] for name in series})
        dashes = {name: cycle(LINES) for name in series}
        taken = {
            s.label: Look(shared[s.series].colour, shared[s.series].marker, next(dashes[s.series]))
            for s in schemes
        }
    if not grey:
        return taken
    return {
        label: Look(look.colour, look.marker, GREY_LINES[i % len(GREY_LINES)])
        for i, (label, look) in enumerate(taken.items())
    }


def with_own_markers(look: dict[str, Look]) -> dict[str, Look]:
    """For marks without a line, which dashes cannot tell apart: a marker for each, where some would share one."""
    if len({mine.marker for mine in look.values()}) == len(look):
        return look
    return {
        label: replace(mine, marker=MARKERS[i % len(MARKERS)])
        for i, (label, mine) in enumerate(look.items())
    }


def series_looks(schemes: list[Scheme], grey: bool = False) -> dict[str, Look]:
    """Series -> look, for figures in which a series is one line or one cloud of points."""
    roles = {scheme.series: scheme.role for scheme in reversed(schemes)}
    taken = _by_name(
        {name: roles[name] for name in dict.fromkeys(scheme.series for scheme in schemes)}
    )
    lines = GREY_LINES if grey else ("-",)
    return {
        name: Look(look.colour, look.marker, lines[i % len(lines)] if grey else look.line)
        for i, (name, look) in enumerate(taken.items())
    }


def _by_name(roles: dict[str, str | None]) -> dict[str, Look]:
    """Name -> look: the first of every role has the role's, the others what is left."""
    taken: dict[str, Look] = {}
    seen: set[str] = set()
    for name, role in roles.items():
        if role and role not in seen:
            seen.add(role)
            taken[name] = Look(*ROLE_LOOK[role], "-")
    used = {(look.colour, look.line) for look in taken.values()}
    spare = [
        Look(colour, marker, line)
        for line in LINES
        for colour, marker in (*OTHER_LOOK, *ROLE_LOOK.values())
    ]
    spare = [look for look in spare if (look.colour, look.line) not in used]
    for i, name in enumerate(name for name in roles if name not in taken):
        taken[name] = spare[i % len(spare)]
    return {name: taken[name] for name in roles}


def phase_colours(phases: list[str]) -> dict[str, str]:
    """Phase -> colour: the same one in every figure."""
    others = [phase for phase in phases if phase not in PHASE_COLOURS]
    spare = {phase: OTHER_PHASES[i % len(OTHER_PHASES)] for i, phase in enumerate(others)}
    return {phase: PHASE_COLOURS.get(phase) or spare[phase] for phase in phases}


def hatches(names: list[str], style: Style) -> dict[str, str]:
    """Name -> hatch of its bars; none on a screen, where the colours tell them apart."""
    others = [name for name in names if name not in PHASE_HATCHES]
    spare = {name: OTHER_HATCHES[i % len(OTHER_HATCHES)] for i, name in enumerate(others)}
    return {name: (PHASE_HATCHES | spare)[name] if style.grey else "" for name in names}


def settings(style: Style) -> dict[str, object]:
    """matplotlib rc settings. Text becomes paths in SVG, so that the page needs no font."""
    small = style.size if style.grey else style.size - 1  # 8 pt is the least that a paper takes
    return {
        "font.family": "DejaVu Sans",
        "font.size": style.size,
        "axes.titlesize": style.size,
        "axes.labelsize": style.size,
        "legend.fontsize": max(small, style.size - 0.5),
        "xtick.labelsize": small,
        "ytick.labelsize": small,
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
        "hatch.linewidth": 0.5,
        "hatch.color": INK,
        "text.color": INK,
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
        "lines.linewidth": style.line,
        "lines.markersize": style.marker,
        "legend.frameon": False,
        "figure.dpi": 150,
        "savefig.dpi": 300,
        "pdf.fonttype": 42,
        "svg.fonttype": "path",
        "svg.hashsalt": "edgesim",
    }
