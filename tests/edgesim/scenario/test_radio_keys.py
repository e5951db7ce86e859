"""Radio keys that are not allowed, or that nothing reads, are one sentence with file and line."""

from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario import load

FILE = Path(__file__).parents[3] / "scenarios" / "planning-under-fading.yaml"
URBAN = FILE.with_name("urban-macro.yaml")
CONSTANT = "network.channel.path_loss={model: constant, loss: 100 dB}"
CARRIER = "network.carrier={{frequency: 3.5 GHz, {}}}"
PLACE = "devices.0.position"
REFUSED = [
    # label, changes, part of the sentence
    ("now", ["allocation.rate=quantil"], "did you mean quantile?"),
    ("now", ["allocation.reliability=0.9"], "reads no reliability;"),
    ("mean", ["allocation.reliability_for=round"], "reads no reliability_for;"),
    ("quantile 5 percent", ["allocation.reliability=1"], "more than 0 and less than 1"),
    ("quantile 5 percent", ["allocation.reliability=0"], "more than 0"),
    ("quantile 5 percent", ["allocation.reliability=95 %"], "a plain number without unit"),
    ("quantile 5 percent", ["allocation.reliability_for=devices"], "did you mean device?"),
    ("quantile 5 percent", ["budget.latency_threshold=none"], "needs a threshold"),
    ("now", ["network.channel.fading={kind: none, speed: 3 km/h}"], "reads no speed"),
    ("now", ["network.channel.fading.speed=3 km/h"], "stands beside coherence"),
    ("now", ["network.channel.fading.process=clarke"], "needs a speed"),
    ("now", ["network.channel.fading={kind: rician, coherence: 5 ms}"], "without k; write"),
    ("now", ["network.channel.fading.k=9 dB"], "reads no k;"),
    ("now", ["network.channel.shadowing=table"], "is table, which path_loss model constant"),
    ("now", ["network.carrier={frequency: 3.5 GHz}"], "network.carrier is not read"),
    ("now", ["devices.0.position={disc: 5 m}"], "is not read with path_loss model constant"),
    ("now", ["devices.0.height=5 m"], "is not read with path_loss model constant"),
    ("urban", ["network.channel.fading.k=-300 dB"], "more than -60 dB and at most 60 dB"),
    ("urban", ["network.channel.fading.speed=3 kmh"], "did you mean km/h?"),
    ("urban", ["network.channel.fading.speed=0 m/s"], "more than 0"),
    ("urban", ["network.carrier.frequency=200 GHz"], "holds from 0.5 to 100 GHz"),
    ("urban", [CARRIER.format("bandwidth: 20 MHz")], "stands beside carrier.bandwidth"),
    ("urban", [CARRIER.format("bandwidth: 20 MHz, scs: 120 kHz")], "allowed is 15, 30 or 60 kHz"),
    ("urban", [CARRIER.format("bandwidth: 17 MHz")], "has channels of 5, 10, 15, 20"),
    ("urban", [CARRIER.format("bandwidth: 3 MHz, scs: 60 kHz")], "has channels of 10, 15"),
    ("urban", [CARRIER.format("bandwidth: 20 MHz, tdd: DDDSX")], "slots such as DDDSU"),
    ("urban", [CARRIER.format("bandwidth: 20 MHz, tdd: UDD")], "at most one S, then U"),
    ("urban", [CARRIER.format("bandwidth: 20 MHz, tdd: DSU, special: 9:2:2")], "these are 13"),
    ("urban", [CARRIER.format("bandwidth: 20 MHz, special: 9:3:2")], "read with tdd only"),
    ("urban", [CARRIER.format("bandwidth: 20 MHz, overhead_up: 1")], "leaves nothing"),
    ("urban", [CARRIER.format("scs: 15 kHz")], "read with carrier.bandwidth only"),
    ("urban", [CARRIER.format("tdd: DDDSU")], "read with carrier.bandwidth only"),
    ("urban", ["network.channel.path_loss.los=no"], "field or always or never"),
    ("urban", ["network.channel.path_loss.walls.indoor=80"], "at most 1"),
    ("urban", ["network.channel.path_loss={model: inh, walls: {indoor: 0.5}}"], "reads no walls"),
    ("urban", ["network.channel.path_loss.walls={high_loss: 0.9}"], "nobody is in a building"),
    (
        "urban",
        ["network.channel.path_loss={model: rma, walls: {indoor: 0.5, high_loss: 0.9}}"],
        "low-loss walls only",
    ),
    (
        "urban",
        ["network.channel.path_loss.model=umx"],
        "allowed is constant or log-distance or uma",
    ),
    ("urban", [CONSTANT], "is table, which path_loss model constant"),
    ("urban", [f"{PLACE}={{square: 5 m}}"], "write {disc: radius}"),
    ("urban", [f"{PLACE}={{ring: [5 m, 3 m]}}"], "the inner radius is at most the outer one"),
    ("urban", [f"{PLACE}={{ring: 5 m}}"], "write two radii"),
    ("urban", [f"{PLACE}={{disc: 5}}"], "no unit"),
    ("urban", [f"{PLACE}={{list: [[1 m, 2 m]]}}"], "has 1 point, but count says 40"),
    ("urban", [f"{PLACE}={{list: [[1 m]]}}"], "write x and y"),
    ("urban", [f"{PLACE}={{list: []}}"], "write a list"),
    ("urban", [f"{PLACE}={{csv: nowhere.csv}}"], "the file cannot be read"),
    ("urban", [f"{PLACE}={{csv: urban-macro.yaml}}"], "must name the columns x_m and y_m"),
    ("urban", ["devices.0.distance=100 m"], "stands beside distance"),
    ("urban", ["devices.0.height=-1 m"], "more than 0"),
]


@pytest.mark.parametrize(("label", "changes", "part"), REFUSED, ids=lambda x: str(x)[-40:])
def test_it_is_one_sentence_with_its_key(label, changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(URBAN, ["~schemes", *changes]) if label == "urban" else load(FILE, changes, label)
    sentence = str(refused.value)
    assert part in sentence and "\n" not in sentence
    assert "command line" in sentence or ".yaml:" in sentence


def test_a_file_of_positions_is_read_and_written_back_as_a_list(tmp_path):
    (tmp_path / "places.csv").write_text("device,x_m,y_m\n0,1.5,-2\n1,30,40\n", encoding="utf-8")
    (tmp_path / "two.yaml").write_text(URBAN.read_text(encoding="utf-8"), encoding="utf-8")
    two = load(
        tmp_path / "two.yaml", ["~schemes", f"{PLACE}={{csv: places.csv}}", "devices.0.count=2"]
    )
    assert two.devices[0].position.points_m == ((1.5, -2.0), (30.0, 40.0))
    (tmp_path / "again.yaml").write_text(two.to_yaml(), encoding="utf-8")
    again = load(tmp_path / "again.yaml")
    assert again.devices[0].position.points_m == ((1.5, -2.0), (30.0, 40.0))
    (tmp_path / "places.csv").write_text("x_m,y_m\n0,north\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="its line 2 has no finite x_m and y_m"):
        load(
            tmp_path / "two.yaml", ["~schemes", f"{PLACE}={{csv: places.csv}}", "devices.0.count=1"]
        )


@pytest.mark.parametrize("shadowing", ["table", "6 dB", "none"])
def test_a_resolved_scenario_reads_back_to_the_same_digest(tmp_path, shadowing):
    given = load(URBAN, ["~schemes", f"network.channel.shadowing={shadowing}"])
    (tmp_path / "again.yaml").write_text(given.to_yaml(), encoding="utf-8")
    assert load(tmp_path / "again.yaml").digest() == given.digest()
