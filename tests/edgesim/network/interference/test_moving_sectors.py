"""Devices that move between sectors: uploads that go on, failed links, refusals."""

import math
from itertools import pairwise

import numpy as np
import pytest
import simpy

from edgesim.errors import ScenarioError
from edgesim.runs.run import simulate
from edgesim.runs.setup import set_up
from edgesim.scenario import load

LINE = "device,time_s,x_m,y_m\n0,0,0,0.001\n0,25,500,0.001\n"
TEXT = """
name: two-sites
rounds: 1
network:
  bandwidth: 1 MHz
  noise: -170 dBm/Hz
  layout: {kind: sites, position: {list: [[0 m, 0 m], [500 m, 0 m]]}}
  handover: {filter: 0}
  channel:
    path_loss: {model: log-distance, reference_loss: 30 dB, exponent: 3.5}
    refresh: 40 ms
devices:
  - {count: 1, tx_power: 1 mW, mobility: {trace: line.csv, end: hold},
     cpu: {frequency: 2 GHz, cycles_per_weight: 5}}
learning: {dataset: none, model: liu-cnn, batch_size: 128, method: fedavg}
accounting: {bits_per_weight: 400}
allocation: {solver: equal}
"""
OTHER = """
  - {count: 1, tx_power: 1 W, position: {list: [[0 m, 1 m]]},
     cpu: {frequency: 2 GHz, cycles_per_weight: 5}}"""
WALKERS = """
name: walkers
rounds: 3
network:
  bandwidth: 20 MHz
  carrier: {frequency: 3.5 GHz}
  noise: -169 dBm/Hz
  layout: {kind: hex, rings: 1, sectors: 3, isd: 200 m}
  channel:
    path_loss: {model: umi, antenna: {kind: element}}
    fading: {kind: rician, k: table, speed: 3 km/h}
    refresh: 200 ms
devices:
  - count: 12
    tx_power: 10 dBm
    position: {disc: 250 m}
    mobility: {waypoint: {speed: {uniform: [20 m/s, 40 m/s]}}}
    cpu: {frequency: 2 GHz, cycles_per_weight: 5}
budget: {latency_threshold: 1 s}
learning: {dataset: none, model: liu-cnn, batch_size: 128,
  method: {name: liu, personal_lr: 0.1, global_lr: 0.1}}
"""


@pytest.fixture
def network(tmp_path):
    def read(text, *changes):
        (tmp_path / "line.csv").write_text(LINE)
        (tmp_path / "n.yaml").write_text(text)
        return load(tmp_path / "n.yaml", changes)

    return read


def rate_bps(time_s, site_m):
    """Of the device alone, at the place of the last refresh."""
    step = math.floor(round(time_s / 0.04, 9)) * 0.04
    distance_m = math.hypot(min(20.0 * step, 500.0) - site_m, 0.001)
    loss_db = 30.0 + 35.0 * math.log10(distance_m)
    return 1e6 * math.log2(1.0 + 1e-3 * 10 ** (-loss_db / 10.0) / (1e-20 * 1e6))


@pytest.mark.slow
def test_an_upload_goes_on_in_the_new_sector(network):
    """Handed over at 14.32 s for 50 ms; the bits are the sum of rate x time on both sides."""
    run = simulate(network(TEXT))
    spans = run.spans.set_index("phase")
    assert spans.loc["handover", "start_s"] == pytest.approx(14.32, abs=1e-9)
    assert spans.loc["handover", "end_s"] == pytest.approx(14.37, abs=1e-9)
    before, after = spans.loc["upload"].to_dict("records")
    assert before["end_s"] == spans.loc["handover", "start_s"]
    assert after["start_s"] == spans.loc["handover", "end_s"]
    for span, site_m in ((before, 0.0), (after, 500.0)):
        edges = np.arange(0.0, 30.0, 0.04)
        inside = edges[(edges > span["start_s"]) & (edges < span["end_s"])]
        times = [span["start_s"], *inside, span["end_s"]]
        sent = sum(rate_bps((a + b) / 2.0, site_m) * (b - a) for a, b in pairwise(times))
        assert span["bits"] == pytest.approx(sent, rel=1e-9)
    row = run.device_rounds.iloc[0]
    assert row["handovers"] == 1 and row["status"] == "arrived"
    assert row["bits_up"] == pytest.approx(before["bits"] + after["bits"], rel=1e-12)
    in_all = row["download_s"] + row["compute_s"] + row["upload_s"]
    assert in_all == pytest.approx(row["finish_s"], rel=1e-12)
    air_s = sum(each["end_s"] - each["start_s"] for each in (before, after))
    joules = run.spans.groupby("phase")["energy_j"].sum()
    assert joules["upload"] == pytest.approx(1e-3 * air_s) and joules["handover"] == 0.0
    assert row["energy_j"] == pytest.approx(joules.sum(), rel=1e-12)
    assert row["sinr_db"] == pytest.approx(ratio_db(row["bits_up"], air_s), abs=1e-9)


@pytest.mark.slow
def test_a_device_receives_while_it_is_handed_over(network):
    """Also where the downlink takes no time: 50 ms of 300 mW."""
    spans = simulate(network(TEXT, "devices.0.receive_power=300 mW")).spans
    joules = spans[spans.phase == "handover"].energy_j.tolist()
    assert joules == pytest.approx([0.3 * 0.05], rel=1e-9)


def ratio_db(bits, seconds):
    """That of the mean of log2(1 + SINR) over 1 MHz and the time on the air, dB."""
    return 10.0 * math.log10(2.0 ** (bits / (1e6 * seconds)) - 1.0)


def computing_until(network, time_s, *changes):
    """Row and spans of a device that is handed over at 14.32 s, and sends from time_s on."""
    slow = "network.handover={filter: 0, interruption: 2 s}", *changes
    cycles = simulate(network(TEXT, *slow)).device_rounds["cycles"][0]
    run = simulate(network(TEXT, *slow, f"devices.0.cpu.frequency={float(cycles / time_s)!r} Hz"))
    return run.device_rounds.iloc[0], run.spans.set_index("phase")


@pytest.mark.slow
@pytest.mark.parametrize(("begins_s", "parts"), [(14.3, 2), (14.33, 1), (16.3, 1), (16.33, 0)])
def test_an_upload_that_begins_during_the_interruption_waits_for_its_end(network, begins_s, parts):
    """Nothing is sent between 14.32 s and 16.32 s; before it, a part of the bits."""
    row, spans = computing_until(network, begins_s)
    uploads, pauses = spans.loc[["upload"]], spans[spans.index == "handover"]
    assert uploads.start_s.tolist() == pytest.approx([[16.33], [16.32], [14.3, 16.32]][parts])
    assert pauses.end_s.tolist() == pytest.approx([16.32] * min(parts, 1))
    assert pauses.start_s.tolist() == pytest.approx([max(begins_s, 14.32)] * min(parts, 1))
    assert row["handovers"] == min(parts, 1) and row["bits_up"] == uploads.bits.sum()
    assert row["upload_s"] == pytest.approx(row["finish_s"] - begins_s)


@pytest.mark.slow
def test_a_download_that_begins_during_the_interruption_waits_for_its_end(network):
    """Round 1 begins at 15 s, when a device that stands at the first site has ended round 0."""
    two = TEXT.replace(
        "\n  - {count: 1, tx_power: 1 mW,", OTHER + "\n  - {count: 1, tx_power: 1 W,"
    )
    two = two.replace("filter: 0", "filter: 0, interruption: 2 s").replace("rounds: 1", "rounds: 2")
    two = two.replace("  layout:", "  downlink: {mode: broadcast, tx_power: 1000 W}\n  layout:")
    given = "accounting={bits_per_weight: 1}", "network.bandwidth=100 MHz"
    cycles = simulate(network(two, *given, "rounds=1")).device_rounds["cycles"][0]
    run = simulate(network(two, *given, f"devices.0.cpu.frequency={float(cycles / 15.0)!r} Hz"))
    down = run.spans[(run.spans.phase == "download") & (run.spans["round"] == 1)]
    assert down.start_s.tolist() == pytest.approx([15.0] * 2, abs=0.1)
    assert (
        down.end_s.tolist() == pytest.approx([15.0, 16.32], abs=0.1) and down.end_s.iloc[1] > 16.32
    )


@pytest.mark.slow
def test_who_waits_for_a_band_after_a_handover_draws_idle_power(network):
    """The other device has the whole band of the new sector until it is done.

    1 mW until 14.32 s and from then on; 0.1 mW between: it was 1 mW, though nothing was sent.
    """
    there = OTHER.replace("0 m, 1 m", "500 m, 1 m").replace("1 W", "SLOW")
    mover = "\n  - {count: 1, tx_power: 1 mW,"
    two = TEXT.replace(mover, f"{there}{mover} idle_power: 0.1 mW,")
    run = simulate(network(two.replace("SLOW", "4e-9 W")))
    uploads = run.spans[run.spans.phase == "upload"]
    other, before, after = uploads.sort_values(["device", "start_s"]).to_dict("records")
    assert after["start_s"] == pytest.approx(14.37) and other["end_s"] > after["start_s"] + 5.0
    waited_s = other["end_s"] - after["start_s"]
    sent_s = after["end_s"] - other["end_s"]
    assert after["energy_j"] == pytest.approx(1e-3 * sent_s + 1e-4 * waited_s, rel=1e-9)
    assert before["energy_j"] == pytest.approx(1e-3 * (14.32 - before["start_s"]), rel=1e-9)
    row = run.device_rounds[run.device_rounds.handovers == 1].iloc[0]
    on_air_s = 14.32 - before["start_s"] + sent_s
    assert row["sinr_db"] == pytest.approx(ratio_db(row["bits_up"], on_air_s), abs=1e-9)


@pytest.mark.slow
def test_without_handovers_the_link_fails(network):
    """Signal over that of the other site below -8 dB from 314.33 m on: 15.72 s, and lost at 16.72.

    The device is counted as failed, and was served by the first site until then.
    """
    run = simulate(network(TEXT, "network.handover={event: none}"))
    assert run.device_rounds["status"].tolist() == ["failed"]
    (upload,) = run.spans[run.spans["phase"] == "upload"].to_dict("records")
    assert upload["end_s"] == pytest.approx(16.72, abs=1e-9)
    assert run.device_rounds["handovers"].tolist() == [0]


@pytest.mark.slow
def test_a_network_of_walkers_resumes_with_the_same_bytes(network, tmp_path):
    whole = simulate(network(WALKERS), out=tmp_path / "whole")
    assert whole.device_rounds["handovers"].sum() > 0
    simulate(network(WALKERS, "rounds=1"), out=tmp_path / "parts")
    simulate(network(WALKERS), out=tmp_path / "parts")
    for name in ("rounds.csv", "device_rounds.parquet", "spans.parquet"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_gains_and_k_factors_follow_the_devices(network):
    setup = set_up(network(WALKERS))
    cell = setup.cell(simpy.Environment(initial_time=7.3))
    cell.view(0)
    links = setup.channel.moving.at(7.2)
    assert cell.couplings.gain.tolist() == links.coupling.tolist()
    everybody, site = np.arange(12), setup.channel.moving.site_of[cell.couplings.serving]
    gain, k_factor = cell.channel.large_scale_at(7.3)
    assert gain == pytest.approx(links.coupling[everybody, cell.couplings.serving], rel=1e-12)
    assert k_factor.tolist() == links.k_factor[everybody, site].tolist()
    assert setup.channel.couplings.gain.tolist() != cell.couplings.gain.tolist()  # its own copy


REFUSED = [
    (WALKERS, ["network.handover={time_to_trigger: 123 ms}"], "TS 38.331 has 0, 40, 64, 80, 100"),
    (WALKERS, ["network.handover={offset: 3.2 dB}"], "steps of 0.5 dB"),
    (WALKERS, ["network.handover={hysteresis: -1 dB}"], "at least 0"),
    (WALKERS, ["network.handover={filter: 10}"], "TS 38.331 has 0, 1, 2"),
    (WALKERS, ["network.handover={event: a2}"], "a3 or none"),
    (WALKERS, ["network.handover={sample: 1 ns}"], "at least 0.001"),
    (WALKERS, ["~devices.0.mobility", "~network.channel.refresh", "network.handover={}"], "move"),
    (
        WALKERS,
        ["network.layout={kind: single}", "network.handover={}"],
        "is read where devices move between cells",
    ),
    (TEXT, ["network.handover={lost_after: 0 s}"], "more than 0"),
]


@pytest.mark.parametrize(("text", "changes", "part"), REFUSED, ids=lambda x: str(x)[-40:])
def test_mistakes_are_one_sentence(network, text, changes, part):
    with pytest.raises(ScenarioError) as refused:
        network(text, *changes)
    assert part in str(refused.value) and "\n" not in str(refused.value)
