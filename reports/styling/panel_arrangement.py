"""Panels of a figure lettered for a caption, or each taken out as a figure of its own."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from reports.styling.axes_and_legends import legend
from reports.styling.figure_style import WIDTHS_IN, FigureStyle
from reports.styling.point_labels import arrange_labels


def panels_of(figure: Figure) -> list[Axes]:
    """The visible panels, without the scales of colours beside them."""
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"]


def letter_panels(figure: Figure) -> None:
    """Write (a), (b), ... in front of the titles of a figure with several panels.

    A title stands above the legend of its own that a panel may have above it.
    """
    panels = panels_of(figure)
    for letter, panel in zip(
        string.ascii_lowercase, panels if len(panels) > 1 else [], strict=False
    ):
        title = f"({letter}) {panel.get_title(loc='left')}".rstrip()
        panel.set_title(title, loc="left", pad=rcParams["axes.titlepad"] + _legend_above_pt(panel))


def _legend_above_pt(panel: Axes) -> float:
    """How far the panel's legend reaches beyond its top, points; 0 where it does not."""
    own = panel.get_legend()
    if own is None:
        return 0.0
    return max(0.0, own.get_window_extent().y1 - panel.bbox.y1) * 72 / own.figure.dpi


def panels_apart(draw: Callable[[FigureStyle], Figure], style: FigureStyle) -> list[Figure]:
    """A figure for each panel, one column wide, with the legend of them all.

    Args:
        draw: of the figure with all panels; called once for each.
        style: of the figures.
    """
    narrow = replace(style, width_in=min(style.width_in, WIDTHS_IN[style.name][1]))
    whole = draw(style)
    count = len(panels_of(whole))
    if count < 2:
        return [whole]
    figures = (draw(style) for _ in range(count))
    return [_only_panel(figure, i, narrow) for i, figure in enumerate(figures)]


def _only_panel(figure: Figure, i: int, style: FigureStyle) -> Figure:
    panels = panels_of(figure)
    kept, first = panels[i], panels[0]
    height = kept.get_position().height * figure.get_figheight() + 0.5
    if not kept.get_ylabel():  # panels side by side share it
        kept.set_ylabel(first.get_ylabel())
    handles, labels = first.get_legend_handles_labels()
    known: dict[str, Any] = dict(zip(labels, handles, strict=True))
    coloured, scale = _without_scales(panels, kept)
    for panel in panels:
        if panel is not kept:
            figure.delaxes(panel)
    kept.tick_params(labelleft=bool(kept.get_yticks().size), labelbottom=True)
    kept.set_subplotspec(GridSpec(1, 1, figure=figure)[0])
    if coloured is not None:
        figure.colorbar(coloured, ax=kept, pad=0.02, aspect=25).set_label(scale)
    figure.set_size_inches(style.width_in, max(height, 0.62 * style.width_in))
    for old in list(figure.legends):
        named = zip(old.legend_handles, (text.get_text() for text in old.get_texts()), strict=True)
        either = [(text, known.get(text) or handle) for handle, text in named]
        kept_handles = [(text, handle) for text, handle in either if handle is not None]
        old.remove()
        for text, handle in kept_handles:
            handle.set_label(text)
        title = old.get_title().get_text()
        legend(figure, None, style, [handle for _, handle in kept_handles], title)
    if not figure.legends and kept.get_legend() is None:  # another panel named its lines
        legend(figure, kept, style)
    arrange_labels(figure, kept)
    return figure


def _without_scales(panels: list[Axes], kept: Axes) -> tuple[Any, str]:
    """Remove the scales of colours beside panels.

    Returns:
        What is coloured in the kept panel, None where nothing is, and the title of its scale: of
        its own, or of the last one, which panels share.
    """
    drawn = {panel: (*panel.images, *panel.collections) for panel in panels}
    coloured = {
        panel: [each for each in parts if each.get_array() is not None]
        for panel, parts in drawn.items()
    }
    scales = {panel: each.colorbar for panel in panels for each in coloured[panel] if each.colorbar}
    titles = {panel: scale.ax.get_ylabel() for panel, scale in scales.items()}
    for scale in scales.values():
        scale.remove()
    if not titles or not coloured[kept]:
        return None, ""
    return coloured[kept][0], titles.get(kept, [*titles.values()][-1])
