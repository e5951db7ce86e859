"""Figures in the style of the screen."""

from __future__ import annotations

import pytest

from reports.styling.figure_style import SCREEN, styled


@pytest.fixture
def drawn():
    """drawn(draw, schemes) -> the figure that draw makes of them."""

    def make(draw, schemes):
        with styled(SCREEN):
            return draw(schemes, SCREEN)

    return make
