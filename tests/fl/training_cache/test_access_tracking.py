"""Views and grants that record which of their fields are read."""

from dataclasses import replace

import numpy as np
import pytest

from fl.contracts import Grant, View
from fl.training_cache.access_tracking import LateReadError, Readings, tracked


def test_readings_are_recorded_and_refused_once_the_record_is_closed():
    view = View(
        0, 0.0, np.arange(2), np.ones(2), np.ones(2), np.ones(2), 1.0, np.ones(2), np.ones(2)
    )
    readings = Readings()
    seen, grant = tracked(view, readings), tracked(Grant(1, 0.5, 0.0, 1e9, 0.1), readings)
    assert isinstance(seen, View) and seen.cpu_hz is view.cpu_hz and grant.device == 1
    assert set(readings.values) == {"View.cpu_hz", "Grant.device"}
    readings.closed = True
    assert seen.cpu_hz is view.cpu_hz  # its value is known already
    with pytest.raises(LateReadError, match=r"View\.rate_bps"):
        _ = seen.rate_bps
    readings.closed = False
    copy = replace(seen, g=3)  # reads everything but g
    assert copy.g == 3 and len(readings.values) == 1 + len(View.__dataclass_fields__) - 1
