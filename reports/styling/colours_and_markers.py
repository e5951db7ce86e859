"""One fixed colour and marker per scheme, colour and hatch per phase, in every figure.

Colours that colour-blind readers can tell apart: Okabe and Ito, "Color universal design", 2008.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from reports.run_data.liu_reported_results import EQUAL, PERSONAL, PROPOSED, PRUNING
from reports.run_data.scheme_grouping import Scheme
from reports.styling.figure_style import FigureStyle

Dashes = str | tuple[float, tuple[float, ...]]  # as matplotlib's linestyle

ROLE_COLOURS = {
    PROPOSED: ("#0072B2", "o"),
    EQUAL: ("#E69F00", "s"),
    PRUNING: ("#009E73", "^"),
    PERSONAL: ("#CC79A7", "D"),
}
OTHER_COLOURS = (
    *(
        ("#4D4D4D", "v"),
        ("#D55E00", "P"),
        ("#56B4E9", "X"),
        ("#8C6D31", "<"),
        ("#882255", ">"),
        ("#999933", "*"),
    ),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
GREY_DASHES: tuple[Dashes, ...] = (
    *DASHES,
    *((0, (8, 2)), (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)), (0, (1, 2.5)), (0, (10, 2, 2, 2))),
)
PHASE_COLOURS = {
    "download": "#9A9A9A",
    "personal": "#CC79A7",
    "warm-up": "#F0E442",
    "global": "#009E73",
    "train": "#E69F00",
    "upload": "#0072B2",
    "handover": "#D55E00",
    "idle": "#E8E8E8",
    "waiting": "#E8E8E8",
    "off": "#4A4A4A",
}
OUTCOME_COLOURS = {
    "fresh": "#0072B2",
    "stale": "#56B4E9",
    "held": "#F0E442",
    "late": "#E69F00",
    "failed": "#4D4D4D",
    "left": "#009E73",
    "cancelled": "#CC79A7",
    "discarded": "#D55E00",
    "unfinished": "#E8E8E8",
}
OTHER_PHASE_COLOURS = ("#56B4E9", "#D55E00", "#882255", "#999933")
PHASE_HATCHES = {  # upload and idle are told apart by dark and light
    "download": "....",
    "personal": "////",
    "warm-up": "xxxxxx",
    "global": "\\\\\\\\",
    "train": "++++",
    "upload": "",
    "handover": "||||",
    "idle": "",
    "waiting": "",
    "off": "xx",
    "uplink": "",
    "downlink": "....",
    "fresh": "",
    "stale": "////",
    "held": "++++",
    "late": "....",
    "failed": "xxxxxx",
    "left": "oo",
    "cancelled": "\\\\\\\\",
    "discarded": "----",
    "unfinished": "",
}
OTHER_HATCHES = ("----", "oooo", "||||", "**")


@dataclass(frozen=True)
class SeriesStyle:
    """Colour, marker and dashes of one line."""

    colour: str
    marker: str
    dashes: Dashes

    @property
    def line(self) -> dict[str, Any]:
        """What matplotlib's plot takes."""
        return {"color": self.colour, "ls": self.dashes, "marker": self.marker}

    @property
    def points(self) -> dict[str, Any]:
        """The same for markers without a line."""
        return self.line | {"ls": "none"}


def scheme_styles(schemes: list[Scheme], grey: bool = False) -> dict[str, SeriesStyle]:
    """Label -> style. Schemes with a role always look the same; the others take what is left.

    The members of one series of a sweep share colour and marker and differ in their dashes; in
    grey, where colour says nothing, every line has dashes of its own as long as there are some.
    """
    series = _roles(schemes)
    if len(series) in (1, len(schemes)):
        styles = _by_role({scheme.label: scheme.role for scheme in schemes})
    else:
        shared, dashes = _by_role(series), {name: cycle(DASHES) for name in series}
        styles = {
            s.label: replace(shared[s.series], dashes=next(dashes[s.series])) for s in schemes
        }
    return _in_grey(styles) if grey else styles


def series_styles(schemes: list[Scheme], grey: bool = False) -> dict[str, SeriesStyle]:
    """Series -> style, for figures in which a series is one line or one cloud of points."""
    styles = _by_role(_roles(schemes))
    return _in_grey(styles) if grey else styles


def series_cycle(grey: bool) -> list[SeriesStyle]:
    """The styles that lines take one after the other; in grey each with dashes of its own."""
    looks = [*ROLE_COLOURS.values(), *OTHER_COLOURS]
    dashes = cycle(GREY_DASHES) if grey else cycle("-")
    return [SeriesStyle(*look, line) for look, line in zip(looks, dashes, strict=False)]


def with_own_markers(styles: dict[str, SeriesStyle]) -> dict[str, SeriesStyle]:
    """For points without a line, which dashes cannot distinguish: where needed, other markers."""
    if len({style.marker for style in styles.values()}) == len(styles):
        return styles
    return {
        label: replace(style, marker=marker)
        for (label, style), marker in zip(styles.items(), cycle(MARKERS), strict=False)
    }


def _roles(schemes: list[Scheme]) -> dict[str, str | None]:
    """Series -> the role of its first scheme, in order."""
    roles: dict[str, str | None] = {}
    for scheme in schemes:
        roles.setdefault(scheme.series, scheme.role)
    return roles


def _in_grey(styles: dict[str, SeriesStyle]) -> dict[str, SeriesStyle]:
    return {
        label: replace(style, dashes=dashes)
        for (label, style), dashes in zip(styles.items(), cycle(GREY_DASHES), strict=False)
    }


def _by_role(roles: dict[str, str | None]) -> dict[str, SeriesStyle]:
    """Name -> style: the first of every role has the role's, the others what is left."""
    taken: dict[str, SeriesStyle] = {}
    seen: set[str] = set()
    for name, role in roles.items():
        if role and role not in seen:
            seen.add(role)
            taken[name] = SeriesStyle(*ROLE_COLOURS[role], "-")
    used = {style.colour for style in taken.values()}
    looks = (*ROLE_COLOURS.values(), *OTHER_COLOURS)
    spare = [
        # a colour that comes again has another marker too: points have no dashes
        SeriesStyle(colour, looks[(i + again) % len(looks)][1], dashes)
        for again, dashes in enumerate(DASHES)
        for i, (colour, _) in enumerate(looks)
        if again or colour not in used
    ]
    rest = (name for name in roles if name not in taken)
    taken |= zip(rest, cycle(spare), strict=False)
    return {name: taken[name] for name in roles}


def phase_colours(phases: Iterable[str]) -> dict[str, str]:
    """Phase -> colour: the same one in every figure."""
    others = cycle(OTHER_PHASE_COLOURS)
    return {phase: PHASE_COLOURS.get(phase) or next(others) for phase in phases}


def hatches(names: Iterable[str], style: FigureStyle) -> dict[str, str]:
    """Name -> hatch of its bars; none on a screen, where the colours distinguish them."""
    others = cycle(OTHER_HATCHES)
    if not style.grey:
        return dict.fromkeys(names, "")
    return {n: PHASE_HATCHES[n] if n in PHASE_HATCHES else next(others) for n in names}
