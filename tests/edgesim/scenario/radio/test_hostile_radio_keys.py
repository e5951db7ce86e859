"""Radio keys that cannot be: one sentence each, with the key, its line, and exit code 2."""

from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario import load

SCENARIOS = Path(__file__).parents[4] / "scenarios"
NETWORK, URBAN = SCENARIOS / "network.yaml", SCENARIOS / "urban-macro.yaml"
GRID = "carrier: {{frequency: 3.5 GHz, bandwidth: 20 MHz, {}}}"
WALK = "mobility: {{waypoint: {{{}}}}}"
DRIFT = "mobility: {{gauss_markov: {{speed: 1 m/s, deviation: 0.3 m/s, {}}}}}"
ERRORS = "adaptation: {{errors: expected, {}}}"
# of the section network, in the line after its fidelity: the line, key, part of the sentence
NETWORK_KEYS = [
    ("fidelity: everything", "fidelity", "paper or cell or adapted or errors or network"),
    ("noise: -134 dBm/kHz", "noise", "did you mean dBm/Hz?"),
    ("layout: {kind: hex, isd: 0 m}", "layout.isd", "at least 1"),
    ("layout: {kind: hex, rings: true}", "layout.rings", "a whole number from 0 to 10"),
    ("layout: {kind: hex, wrap: 1}", "layout.wrap", "true or false"),
    ("layout: []", "layout", "write single or {kind: hex}"),
    ("layout: {kind: sites, position: {list: []}}", "layout.position.list", "write a list"),
    ("power_control: {alpha: .nan}", "power_control.alpha", "not finite"),
    ("power_control: {alpha: 1.2}", "power_control.alpha", "at most 1"),
    ("power_control: {p0: -85 dB}", "power_control.p0", "a power is needed"),
    ("power_control: {P0: -85 dBm}", "power_control.P0", "did you mean network.power_control.p0?"),
    ("interference: mean", "interference", "write none, full, load, events, resolved or {refresh"),
    ("interference: {refresh: 0 s}", "interference.refresh", "at least 1e-05"),
    ("interference: {refresh: 1 ns}", "interference.refresh", "at least 1e-05"),
    ("interference: {refresh: 10}", "interference.refresh", "no unit"),
    (GRID.format("scs: 120 kHz"), "carrier.scs", "allowed is 15, 30 or 60 kHz"),
    (GRID.format("tdd: DDDSX"), "carrier.tdd", "slots such as DDDSU"),
    (GRID.format("tdd: DDD"), "carrier.tdd", "then U"),
    (GRID.format('tdd: DDDU, special: "10:2:2"'), "carrier.special", "a special slot only"),
    (GRID.format("layers: 9"), "carrier.layers", "from 1 to 8"),
    (GRID.format("noise_figure: .inf"), "carrier.noise_figure", "not finite"),
    ("adaptation: mcs", "adaptation", "write a mapping of keys"),
    ("adaptation: {rate: staircase}", "adaptation.rate", "shannon or truncated or mcs"),
    ("adaptation: {implementation_loss: -1 dB}", "adaptation.implementation_loss", "at least 0"),
    ("adaptation: {harq: {most: 0}}", "adaptation.harq.most", "from 1 to 16"),
    ("adaptation: {harq: {round_trip: 8 slots}}", "adaptation.harq.round_trip", "unknown unit"),
    ("adaptation: {harq: {round_trip: 1 h}}", "adaptation.harq.round_trip", "at most 10"),
    (ERRORS.format("harq: {round_trip: 8 ms}"), "adaptation.errors", "no harq.round_trip"),
    (ERRORS.format("harq: {status_delay: 1 ms}"), "adaptation.errors", "no harq.status_delay"),
    ("adaptation: {csi: {pilots: 0.5}}", "adaptation.csi.pilots", "at least 1"),
    ("adaptation: {csi: {delay: -2 ms}}", "adaptation.csi.delay", "at least 0"),
    ("adaptation: {csi: perfect}", "adaptation.csi", "write a mapping of keys"),
    ("adaptation: {errors: none, csi: {}}", "adaptation.errors", "which loses no blocks"),
    (
        "channel: {path_loss: {antenna: {kind: omni}}}",
        "channel.path_loss.antenna.kind",
        "did you mean column?",
    ),
    (
        "channel: {path_loss: {antenna: {downtilt: 181 deg}}}",
        "channel.path_loss.antenna.downtilt",
        "at most 180",
    ),
    (
        "channel: {path_loss: {antenna: {kind: element, elements: 4}}}",
        "channel.path_loss.antenna.kind",
        "which reads no elements",
    ),
    (
        "channel: {fading: {kind: rician, k: -300 dB, speed: 3 km/h}}",
        "channel.fading.k",
        "more than -60",
    ),
    (
        "channel: {path_loss: {model: constant, loss: -100 dB}}",  # a gain
        "channel.path_loss.loss",
        "at least 0",
    ),
    ("channel: {refresh: 1 ns}", "channel.refresh", "at least 0.001"),
    ("channel: {refresh: 1 s}", "channel.refresh", "where devices move only"),
    ("downlink: {mode: unicast}", "downlink.mode", "write {mode: unicast, tx_power: 46 dBm}"),
]
# of the first device class, with a place in a disc unless the line says another
DEVICE_KEYS = [
    (WALK.format("speed: {uniform: [0 m/s, 1 m/s]}"), "mobility.waypoint.speed", "more than 0"),
    (WALK.format("speed: 3 m"), "mobility.waypoint.speed", "a speed is needed"),
    (WALK.format("speed: [1 m/s]"), "mobility.waypoint.speed", "drawn for every leg"),
    (WALK.format("speed: 1 m/s, pause: -1 s"), "mobility.waypoint.pause", "at least 0"),
    (DRIFT.format("memory: 1"), "mobility.gauss_markov.memory", "less than 1"),
    (DRIFT.format("step: 1 ns"), "mobility.gauss_markov.step", "at least 0.001"),
    ("mobility: {}", "mobility", "does not say how"),
    ("mobility: {trace: 5}", "mobility.trace", "write the path of a CSV file"),
    ("mobility: {waypoint: {speed: 1 m/s}, end: hold}", "mobility.end", "read with trace only"),
    ("presence: {kind: sometimes}", "presence.kind", "allowed is always or onoff or diurnal"),
    ("presence: {kind: always}", "presence.kind", "which is the default"),
    ("presence: always", 'presence is "always"', "which is the default; remove presence, write"),
    ("presence: {kind: onoff, on: 0 s, off: 1 s}", "presence.on", "more than 0"),
    ("presence: {kind: onoff, on: [], off: 1 s}", "presence.on", "write at least one value"),
    ("presence: {kind: onoff, on: 100 m, off: 1 s}", "presence.on", "a time is needed"),
    ("presence: {kind: onoff, on: 1 s, off: 1 s, shape: 2}", "presence.law", "reads no shape"),
    (
        "presence: {kind: diurnal, mean: 0.5, amplitude: 0.5, session: 1 h}",
        "presence.amplitude",
        "must lie between 0 and 1",
    ),
    (
        "presence: {kind: blocks, group: north, a: 0, b: 1, block: 60 s}",
        "presence.a",
        "at least 0.01",
    ),
    ('presence: {kind: trace, file: ""}', "presence.file", "write the path of a CSV file"),
    ("height: nan m", "height", "not a number with a unit"),
]


@pytest.fixture
def refused(tmp_path):
    """The sentence about a scenario with one more line, and the number of that line."""

    def check(section, line):
        rows = [row for row in NETWORK.read_text("utf-8").splitlines() if "position:" not in row]
        key = line.split(":")[0]
        rows = [row for row in rows if not row.startswith((f"  {key}:", f"    {key}:"))]
        place, indent = rows.index(section) + 1, "  " if section == "network:" else "    "
        path = tmp_path / "hostile.yaml"
        path.write_text("\n".join([*rows[:place], indent + line, *rows[place:]]), "utf-8")
        with pytest.raises(ScenarioError) as error:
            load(path)
        sentence = str(error.value)
        assert "\n" not in sentence and len(sentence) < 300 and "pydantic" not in sentence
        assert sentence.startswith(f"{path}:{place + 1}: "), sentence
        return sentence

    return check


@pytest.mark.parametrize(("line", "key", "part"), NETWORK_KEYS, ids=[x[0] for x in NETWORK_KEYS])
def test_a_key_of_the_network(refused, line, key, part):
    sentence = refused("network:", line)
    assert f" network.{key}" in sentence and part in sentence


@pytest.mark.parametrize(("line", "key", "part"), DEVICE_KEYS, ids=[x[0] for x in DEVICE_KEYS])
def test_a_key_of_the_devices(refused, line, key, part):
    sentence = refused("  - count: 570", line)
    assert f" devices.0.{key}" in sentence and part in sentence


@pytest.mark.parametrize("line", ["layout: {isd: 0 m}", "adaptation: {csi: {pilots: 0}}"])
def test_the_command_ends_with_it_and_code_2(sentence_of, tmp_path, line):
    rows = NETWORK.read_text("utf-8").splitlines()
    place = rows.index("network:") + 1
    path = tmp_path / "hostile.yaml"
    path.write_text("\n".join([*rows[:place], f"  {line}", *rows[place:]]), "utf-8")
    assert sentence_of("check", path).startswith(f"{path}:{place + 1}: network.")


@pytest.mark.parametrize(
    "moves",
    ["{waypoint: {speed: 1000 m/s}}", "{gauss_markov: {speed: 1000 m/s, deviation: 1 m/s}}"],
)
def test_an_area_that_is_crossed_in_no_time_is_refused(moves):
    """Its devices would turn a thousand million times a second."""
    small = [f"devices.0.mobility={moves}", "devices.0.position={disc: 1e-6 m}"]
    with pytest.raises(ScenarioError, match=r"devices\.0\.position has an area of 1e-06 m"):
        load(URBAN, small, "now")
