"""Any finite number in any key ends in a run, or in one sentence with a key."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.errors import EdgesimError, InfeasibleScenarioError
from edgesim.runs.run import prepare
from edgesim.scenario.documented_keys import all_keys
from edgesim.scenario.loader import load
from edgesim.scenario.units import DIMENSIONS
from tests.conftest import TIMED

FADING = "network.channel.fading={kind: rayleigh, coherence: 5 ms}"
BROADCAST = "network.downlink={mode: broadcast, tx_power: 46 dBm}"
DISTANCES = (
    "network.channel.path_loss={model: log-distance, reference_loss: 40 dB, exponent: 3}",
    "devices.0.distance=100 m",
)
LIU = "learning.method={name: liu, rho_max: 0.9}"
CELLS = [
    (),
    (FADING,),
    (BROADCAST, "network.uplink.share=reclaim"),
    (FADING, BROADCAST, "clock.mode=deadline"),
    DISTANCES,
    *((LIU, f"allocation.solver={name}") for name in ("kkt", "fair", "levels")),
    *((f"allocation.solver={name}",) for name in ("latency", "energy", "proportional")),
]
QUANTITIES = {info.key: info.unit.partition(" ")[0] for info in all_keys() if info.unit}
COUNTS = [info.key for info in all_keys() if info.allowed.startswith("a whole number")]
EXTREME = st.floats(-300.0, 300.0)
PHYSICAL = st.floats(-50.0, 50.0)
USUAL = st.floats(-2.0, 2.0)
MANY = 1000  # devices, or rounds: more would only take longer
WORK = 20_000  # events that an example may take


def quantities(decades):
    """Numbers with units, log-uniform over so many decades, by key."""
    return st.dictionaries(st.sampled_from(sorted(QUANTITIES)), decades, max_size=12)


def override(key, exponent):
    unit = QUANTITIES[key]
    symbol = f" {unit}" if unit in DIMENSIONS else ""
    return f"{placed(key)}={10.0**exponent!r}{symbol}"


def placed(key):
    return key.replace("devices.", "devices.0.")


def ends_well(path, overrides):
    """Runs it, unless that takes long; an error is one sentence with a key."""
    try:
        prepared = prepare(load(path, overrides))
        if prepared.feasibility.events.total * prepared.setup.scenario.rounds < WORK:
            prepared.run()
    except InfeasibleScenarioError as problem:
        assert "\n" not in str(problem)
    except EdgesimError as problem:
        assert re.search(r"[a-z_]+\.[a-z_]+|devices|rounds|scheme_position", str(problem)), problem
        assert "\n" not in str(problem)


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "timed.yaml"
    path.write_text(TIMED.replace("rounds: 3", "rounds: 2"))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("decades", [EXTREME, PHYSICAL, USUAL], ids=["600", "100", "4"])
@settings(max_examples=150)
@given(data=st.data())
def test_numbers_in_all_keys_at_once(timed, decades, data):
    cell = data.draw(st.sampled_from(CELLS))
    changes = [override(*item) for item in data.draw(quantities(decades)).items()]
    counts = st.integers(0, 30).map(lambda exponent: min(10**exponent, MANY))
    for key in data.draw(st.lists(st.sampled_from(COUNTS), unique=True, max_size=3)):
        changes.append(f"{placed(key)}={data.draw(counts)}")
    ends_well(timed, [*cell, *changes])


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(QUANTITIES))
def test_each_quantity_at_the_ends_of_what_is_allowed(timed, key):
    """In the first cell also beyond that, where all cells refuse alike."""
    for cell in CELLS[:5]:
        for exponent in (-50, -20, 20, 50) if cell else (-300, -50, -49, -20, 20, 49, 50, 300):
            ends_well(timed, [*cell, override(key, exponent)])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("devices.0.cpu.frequency=1e300 Hz", "devices.0.cpu.frequency=.*1e-50 and 1e\\+50 Hz"),
        ("network.bandwidth=1e-80 Hz", "network.bandwidth=.*between 1e-50 and 1e\\+50 Hz"),
        ("devices.0.availability=1e-80", "devices.0.availability=.*1e-50 and 1e\\+50"),
        ("network.channel.shadowing=1e40 dB", "network.channel gives device 1 a gain of inf"),
    ],
)
def test_numbers_beyond_physics_are_one_sentence(timed, change, sentence):
    with pytest.raises(EdgesimError, match=sentence):
        prepare(load(timed, [change]))
