"""Keys of layouts and power control: what is refused, in one sentence; what comes back."""

import re
from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario import load
from edgesim.scenario.key_docs import explain_key
from edgesim.scenario.radio.layout_schema import ALPHAS

URBAN = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
HEX = [
    "network.layout={kind: hex}",
    "network.channel.path_loss={model: uma, antenna: {kind: column}}",
]
CELLS = "devices.0={count: 9, tx_power: 23 dBm, cpu: {frequency: 2 GHz, cycles_per_weight: 5}}"
CONTROL = "network.power_control={p0: -85 dBm, alpha: 0.8}"
CONSTANT = [
    "network.channel={path_loss: {model: constant, loss: 100 dB}}",
    "network.carrier={frequency: 3.5 GHz, bandwidth: 20 MHz}",
    "network.bandwidth=18.36 MHz",
]
POINTS = "write {list: [[x, y], ...]} or {csv: file with columns x_m and y_m}"
REFUSED = [
    # changes, part of the sentence
    (["network.layout={kind: hex, isd: 0 m}"], 'network.layout.isd="0 m"; allowed is at least 1'),
    (["network.layout={kind: hex, isd: 500}"], "network.layout.isd=500"),
    (["network.layout={kind: hex, isd: -5 m}"], "at least 1"),
    (["network.layout={kind: hex, rings: 11}"], "from 0 to 10"),
    (["network.layout={kind: hex, rings: 1.5}"], "from 0 to 10"),
    (["network.layout={kind: hex, sectors: 0}"], "from 1 to 12"),
    (["network.layout={kind: hex, wrap: around}"], "true or false"),
    (["network.layout={kind: hexagonal}"], "allowed is single or hex or sites"),
    (["network.layout={rings: 2}"], "has no kind"),
    (["network.layout=grid"], "write single or {kind: hex}"),
    (["network.layout={kind: single, isd: 5 m}"], "belongs to another kind of network.layout"),
    (["network.layout={kind: hex, ring: 2}"], "ring"),
    (["network.layout={kind: sites, position: {disc: 5 m}}"], f"a mapping; {POINTS}"),
    (["network.layout={kind: sites, position: [[0 m, 0 m]]}"], f"a list; {POINTS}"),
    (["network.layout={kind: sites, position: {csv: none.csv}}"], "the file cannot be read"),
    (["network.layout={kind: sites}"], "position is missing"),
    (
        ["network.layout={kind: sites, position: {list: [[1 m, 2 m], [1 m, 2 m]]}}"],
        "two sites at one point",
    ),
    ([HEX[0]], "without path_loss.antenna all of a site are alike"),
    (
        [*CONSTANT, HEX[0], CELLS],
        "path_loss model constant knows no positions; write model: log-distance, or one of TR",
    ),
    ([*HEX, "devices.0.position={cells: 300 m}"], "has no place 300 m from every site"),
    ([*HEX, CELLS, "network.layout.isd=60 m"], "has no place 35 m from every site"),
    ([*HEX, "devices.0.position={cells: -1 m}"], "at least 0"),
    (["devices.0.position={cells: 10 m}"], "need network.layout: {kind: hex}"),
    ([*HEX, CELLS, "devices.0.distance=100 m"], "is not read with network.layout hex"),
    (["network.channel.path_loss.walls={indoor: 0, heights: floors}"], "nobody is in a building"),
    (["network.channel.path_loss.walls={indoor: 0.5, heights: 9}"], "device or floors"),
    (
        ["network.channel.path_loss={model: rma, walls: {indoor: 0.5, heights: floors}}"],
        "not 4 to 8 floors high",
    ),
    (
        ["network.power_control={alpha: 1.2}"],
        "power_control.alpha=1.2; allowed is at least 0",
    ),
    (["network.power_control={alpha: -0.1}"], "at most 1"),
    (
        ["network.power_control={alpha: 0.75}"],
        "power_control.alpha=0.75; TS 38.331, Alpha, has 0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1",
    ),
    (["network.power_control={alpha: 0.3}"], "TS 38.331, Alpha"),
    (["network.power_control={p0: 25 dBm}"], "has -202 dBm to 24 dBm"),
    (["network.power_control={p0: -85}"], "p0"),
    (["network.power_control={p0: -85 dB}"], "p0"),
    (["network.power_control=full"], "write a mapping of keys"),
    ([CONTROL, "network.noise=-100 dBm"], "power_control needs a noise density"),
    ([CONTROL, "allocation.solver=energy"], "needs one of the solvers kkt, equal, proportional"),
    ([CONTROL, "allocation.resource_blocks=20"], "without resource_blocks"),
    ([CONTROL, "network.uplink.share=reclaim"], "which uplink.share reclaim changes"),
    (
        [CONTROL, "network.channel={trace: rates.csv}", "network.carrier=null", CELLS],
        "needs a shipped path loss, not model trace",
    ),
]


@pytest.mark.parametrize(("changes", "part"), REFUSED, ids=range(len(REFUSED)))
def test_a_layout_that_cannot_be_is_one_sentence(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(URBAN, changes, "quantile")
    sentence = str(refused.value)
    assert part in sentence and "\n" not in sentence
    assert sentence.startswith(("command line: ", str(URBAN)))


@pytest.mark.parametrize(
    "changes",
    [
        [*HEX, CELLS],
        [*HEX, "network.layout={kind: hex, isd: 200 m, wrap: false}"],
        ["network.layout={kind: sites, position: {list: [[0 m, 0 m], [100 m, 0 m]]}}"],
        ["network.power_control={p0: -80 dBm, alpha: 1}"],
    ],
)
def test_a_layout_comes_back_from_a_runs_folder(changes, tmp_path):
    scenario = load(URBAN, changes, "quantile")
    (tmp_path / "again.yaml").write_text(scenario.to_yaml())
    again = load(tmp_path / "again.yaml")
    assert again.network == scenario.network and again.digest() == scenario.digest()


def test_the_explanation_of_alpha_lists_the_values_that_are_taken():
    (info,) = explain_key("network.power_control.alpha")
    listed = re.findall(r"[\d.]+(?=[ ,])", info.meaning.partition("38.331: ")[2])
    assert [float(each) for each in listed] == list(ALPHAS)
    for each in listed:
        load(URBAN, [f"network.power_control={{alpha: {each}}}"], "quantile")


def test_the_sites_of_a_file_are_those_of_a_list(tmp_path):
    (tmp_path / "sites.csv").write_text("x_m,y_m\n0,0\n100,0\n")
    form = "network.layout={{kind: sites, position: {{{}}}}}"
    places = f"csv: {tmp_path / 'sites.csv'}", "list: [[0 m, 0 m], [100 m, 0 m]]"
    one, other = (load(URBAN, [form.format(each)], "quantile") for each in places)
    assert one.network.layout.position.points_m == other.network.layout.position.points_m
    assert one.to_yaml() == other.to_yaml()


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("", "it has no place below its first line"),
        ("0,0\n1e9,0\n", "in its line 3 x_m or y_m is beyond 1e+07 m"),
        ("0,inf\n", "its line 2 has no finite x_m and y_m"),
        ("0," + 200_000 * "1", "the file is no table (field larger than field limit (131072))"),
    ],
)
@pytest.mark.parametrize(
    "key", ["network.layout={{kind: sites, position: {}}}", "devices.0.position={}"]
)
def test_a_file_without_usable_places_is_one_sentence(tmp_path, key, lines, problem):
    file = tmp_path / "places.csv"
    file.write_text(f"x_m,y_m\n{lines}")
    with pytest.raises(ScenarioError) as refused:
        load(URBAN, [key.format(f"{{csv: {file}}}")], "quantile")
    assert str(refused.value).endswith(f"; {problem}")


def test_without_a_layout_a_resolved_scenario_does_not_name_one():
    text = load(URBAN, label="quantile").to_yaml()
    assert "layout" not in text and "power_control" not in text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("layout: {kind: hex, isd: 0 m}", "network.layout.isd is"),
        ("layout: {kind: hex, rings: -1}", "network.layout.rings is -1"),
        ("power_control: {alpha: 1.2}", "network.power_control.alpha is 1.2"),
    ],
)
def test_the_sentence_names_the_line(line, sentence, tmp_path):
    lines = URBAN.read_text().splitlines()
    place = lines.index("network:") + 1
    path = tmp_path / "wrong.yaml"
    path.write_text("\n".join([*lines[:place], f"  {line}", *lines[place:]]))
    with pytest.raises(ScenarioError) as refused:
        load(path, (), "quantile")
    assert str(refused.value).startswith(f"{path}:{place + 1}: {sentence}")
