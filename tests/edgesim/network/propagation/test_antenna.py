"""Patterns of a sector's antenna: values by hand, and a run in one sector."""

from pathlib import Path

import numpy as np
import pytest

from edgesim.errors import ScenarioError
from edgesim.network.propagation.antenna import column_gain_db, element_gain_dbi
from edgesim.runs.setup import set_up
from edgesim.scenario import load

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
THREE = [
    "~schemes",
    "devices.0.count=3",
    "devices.0.position={list: [[100 m, 0 m], [0 m, 100 m], [-100 m, 0 m]]}",
]
LOSS = "network.channel.path_loss={model: uma, los: always, antenna: %s}"


@pytest.mark.parametrize(
    ("azimuth", "zenith", "gain"),
    [(0, 90, 8), (32.5, 90, 5), (65, 90, -4), (180, 90, -22), (60, 122.5, -5.224852)],
)
def test_the_element(azimuth, zenith, gain):
    assert element_gain_dbi(zenith, azimuth) == pytest.approx(gain, abs=1e-6)
    assert element_gain_dbi(zenith, azimuth - 360) == pytest.approx(gain, abs=1e-6)


@pytest.mark.parametrize(("zenith", "gain"), [(102, 10), (95, 4.021516), (110, 2.281508)])
def test_a_column_of_ten(zenith, gain):
    assert column_gain_db(zenith, 102.0, 10) == pytest.approx(gain, abs=1e-6)


def test_devices_behind_the_sector_are_30_db_weaker():
    """Azimuths 0, 90 and 180 degrees from the boresight; the antenna is 23.5 m above them."""
    scenario = load(FILE, [*THREE, LOSS % "{kind: element, azimuth: 0 deg}"])
    plain = load(FILE, [*THREE, LOSS.replace(", antenna: %s", "")])
    with_db, without_db = (
        10.0 * np.log10(set_up(each).channel.path_gain) for each in (scenario, plain)
    )
    down = 12.0 * (np.degrees(np.arctan(23.5 / 100.0)) / 65.0) ** 2
    side = 12.0 * (90.0 / 65.0) ** 2
    expected = [8.0 - down, 8.0 - down - side, -22.0]
    assert with_db - without_db == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("antenna", "part"),
    [
        ("{kind: dish}", "element or column"),
        ("{kind: element, downtilt: 95 deg}", "reads no downtilt"),
        ("{kind: column, elements: 0}", "elements"),
        ("{kind: column, azimuth: 30 dB}", "azimuth"),
        ("{kind: column}, antenna_gain: 8 dB", "stands beside antenna"),
    ],
)
def test_what_does_not_fit_is_one_sentence(antenna, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, [*THREE, LOSS % antenna])
    assert part in str(refused.value) and "\n" not in str(refused.value)
