"""Runs of scenarios with several cells: resumed, verified, beside one cell; what is refused."""

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import ScenarioError
from edgesim.network.interference.network_planning import network_planner
from edgesim.verification.verify import verify
from tests.edgesim.resumed_runs import assert_resumed

SEVEN = """
name: seven
rounds: 3
network:
  bandwidth: 18.36 MHz
  carrier: {frequency: 3.5 GHz}
  noise: -169 dBm/Hz
  layout: {kind: hex, rings: 0}
  channel: {path_loss: {model: uma, antenna: {kind: column}}}
devices:
  - {count: 9, tx_power: 23 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 5}}
budget: {latency_threshold: 150 ms}
learning:
  dataset: none
  model: liu-cnn
  batch_size: 20
  method: {name: liu, personal_lr: 0.02, global_lr: 0.02}
"""
FADING = "network.channel.fading={kind: rician, k: table, speed: 3 km/h}"
SITES = "network.layout={kind: sites, position: {list: [[0 m, 0 m]]}}"
NEAR = [  # one omnidirectional site, its devices in a ring
    "network.channel.path_loss={model: uma, antenna_gain: 8 dB}",
    "devices.0.position={ring: [35 m, 250 m]}",
]
UNICAST = "network.downlink={mode: unicast, tx_power: 46 dBm}"
LONGER = "budget.latency_threshold=2 s"  # nine models one after the other
ESTIMATED = "network.adaptation={rate: mcs, errors: drawn, csi: {delay: 2 ms, pilots: 4}}"
WALK = "devices.0.mobility={waypoint: {speed: {uniform: [20 m/s, 30 m/s]}}}"
RESOLVED, MEASURED = "network.interference=resolved", "allocation.interference=measured"
GRID = "network.carrier={frequency: 3.5 GHz, bandwidth: 20 MHz}"
CONTROL = "network.power_control={p0: -85 dBm, alpha: 0.8}"


@pytest.fixture
def seven(tmp_path):
    """`load` of three sectors with changes."""
    (tmp_path / "seven.yaml").write_text(SEVEN)
    return lambda *changes: load(tmp_path / "seven.yaml", [*changes])


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("network.interference={refresh: 10 ms}", "clock.mode=deadline"),
        (FADING, CONTROL, "allocation.rate=quantile"),
        ("allocation.interference=load", "network.interference=load"),
        (FADING, UNICAST, WALK, "devices.0.position={disc: 250 m}", LONGER),
        (RESOLVED, GRID, FADING, WALK, "devices.0.position={disc: 250 m}"),
        (RESOLVED, GRID, MEASURED, "clock.mode=deadline"),
        (MEASURED, "devices.0.presence={kind: onoff, on: 80 ms, off: 30 ms}"),
    ],
    ids=["events", "refresh", "fading", "load", "unicast", "resolved", "measured", "presence"],
)
def test_a_run_that_is_interrupted_at_any_round_equals_the_whole_run(changes, seven, tmp_path):
    names = "rounds.csv", "device_rounds.parquet", "spans.parquet", "summary.json"
    assert_resumed(seven("rounds=2", *changes), tmp_path, range(2), names)
    ((_, checks),) = verify([tmp_path / "killed"])
    assert {check.outcome for check in checks} <= {"ok", "not checked"}
    planned = next(check for check in checks if check.name == "allocations")
    if MEASURED in changes:
        assert planned.outcome == "not checked" and "measured interference" in planned.detail
    else:
        assert planned.outcome == "ok" and "rounds planned again" in planned.detail


@pytest.mark.slow
def test_plans_that_have_not_settled_are_a_warning_also_of_a_resumed_run(
    seven, tmp_path, monkeypatch
):
    scenario = seven("rounds=2", "allocation.interference=load", "network.interference=load")
    assert simulate(scenario).summary["warnings"] == []
    monkeypatch.setattr(network_planner, "TURNS", 2)
    (warning,) = simulate(scenario).summary["warnings"]
    assert warning.startswith("the plans of 2 rounds, first of round 0, have not settled: ")
    assert_resumed(scenario, tmp_path, range(2), ("summary.json",))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ideal", "broadcast", "unicast"])
def test_one_site_that_disturbs_nobody_is_the_cell(mode, seven):
    """One omnidirectional site of a layout, and the single cell: the same devices and tables."""
    downlink = "network.downlink=ideal" if mode == "ideal" else UNICAST.replace("unicast", mode)
    cell = simulate(seven(*NEAR, downlink, FADING, LONGER, "network.layout=single"))
    site = simulate(seven(*NEAR, downlink, FADING, LONGER, SITES))
    for name in ("rounds", "spans"):
        one, other = getattr(cell, name), getattr(site, name)
        assert list(one) == list(other)
        for column in one:
            if one[column].dtype.kind == "f":
                assert other[column].to_numpy() == pytest.approx(
                    one[column].to_numpy(), rel=1e-12, nan_ok=True
                )
    assert (site.device_rounds["sector"] == 0).all()
    assert "sector" not in cell.device_rounds


def test_tables_say_the_sector_and_the_ratio_of_every_upload(seven, tmp_path):
    run = simulate(seven(), out=tmp_path / "run")
    rows = run.device_rounds
    lines = (tmp_path / "run" / "devices.csv").read_text().splitlines()
    served = [int(line.split(",")[lines[0].split(",").index("sector")]) for line in lines[1:]]
    sent = rows[rows["bits_up"] > 0]
    assert sent["sector"].tolist() == [served[k] for k in sent["device"]]
    # within a share of the band, b W log2(1 + SINR) is the mean rate
    mean = sent["share"] * 18.36e6 * np.log2(1.0 + 10.0 ** (sent["sinr_db"] / 10.0))
    assert mean.to_numpy() == pytest.approx(sent["rate_bps"].to_numpy(), rel=1e-9)


@pytest.mark.parametrize("loss_db", [0, 6])
def test_the_ratio_in_the_tables_is_that_of_the_powers(seven, loss_db):
    """100 m at 40 dB and exponent 3 are 100 dB; 23 dBm over a ninth of 18.36 MHz, -169 dBm/Hz:
    23 - 100 + 169 - 63.0963 = 28.9037 dB, however much the receiver loses.
    """
    alike = (
        "~network.carrier",
        "network.channel.path_loss={model: log-distance, reference_loss: 40 dB, exponent: 3}",
        f"devices.0.position={{list: [{', '.join(['[100 m, 0 m]'] * 9)}]}}",
        f"network.adaptation={{rate: mcs, implementation_loss: {loss_db} dB}}",
    )
    run = simulate(seven(SITES, LONGER, *alike, "allocation.solver=equal", "rounds=1"))
    assert run.device_rounds["sinr_db"].to_numpy() == pytest.approx(28.9037, abs=1e-4)


@pytest.mark.slow
def test_blocks_of_a_network_are_sent_as_often_as_those_of_the_cell(seven):
    """Where blocks are lost by estimates; those of devices that nobody disturbs, and of others."""
    cell = simulate(seven(*NEAR, FADING, ESTIMATED, LONGER, "rounds=1", "network.layout=single"))
    site = simulate(seven(*NEAR, FADING, ESTIMATED, LONGER, "rounds=1", SITES))
    wanted = cell.device_rounds["transmissions"].to_numpy()
    assert site.device_rounds["transmissions"].to_numpy() == pytest.approx(wanted, rel=1e-12)
    network = simulate(seven(FADING, ESTIMATED, LONGER, "rounds=1")).device_rounds["transmissions"]
    assert network.between(1.0, 4.0).all() and network.nunique() > 4


@pytest.mark.slow
def test_fewer_cells_or_no_interference_never_slow_a_round(seven):
    """The same plan, with interference of all, of those who send, and of nobody."""
    full, events, none = (
        simulate(seven(f"network.interference={mode}")).device_rounds["finish_s"].to_numpy()
        for mode in ("full", "events", "none")
    )
    assert (events <= full * (1 + 1e-12)).all() and (full <= 0.15 * (1 + 1e-9)).all()
    assert events.mean() < full.mean() and none.size == events.size


REFUSED = [
    (["network.interference=loud"], "write none, full, load, events, resolved or {refresh: 10 ms}"),
    (["network.interference={refresh: 0 s}"], "allowed is at least 1e-05"),
    (["network.interference={refresh: 10}"], "refresh"),
    (["network.interference={every: 10 ms}"], "write none, full, load, events"),
    (["network.layout=single", *NEAR, "network.interference=full"], "not read without other cells"),
    (["network.layout=single", *NEAR, "allocation.interference=load"], "without other cells"),
    (["allocation.interference=events"], "full or load or measured"),
    (["network.interference=none", "allocation.interference=full"], "leaves nothing"),
    (["network.interference=load", "budget.latency_threshold=none"], "a part of the threshold"),
    (["allocation.interference=load", "budget.latency_threshold=none"], "a part of the threshold"),
    (["network.power_control={p0: -300 dBm, alpha: 0}"], "has -202 dBm to 24 dBm"),
    ([RESOLVED], "write for instance network.carrier: {bandwidth: 20 MHz}"),
    (["network.noise=-100 dBm"], "interference adds to a density"),
    (["clock.mode=asynchronous"], "whose jobs overlap"),
    (
        ["network.uplink.share=fair"],
        "sectors divide their bands beforehand so far; write fixed or reclaim",
    ),
    (["network.downlink={mode: unicast}"], "write {mode: unicast, tx_power: 46 dBm}"),
    ([CONTROL, "network.uplink.share=reclaim"], "network.power_control"),
    ([CONTROL, "allocation.solver=energy"], "network.power_control"),
]


@pytest.mark.parametrize(("changes", "part"), REFUSED)
def test_what_does_not_fit_is_one_sentence(changes, part, seven):
    with pytest.raises(ScenarioError) as refused:
        seven(*changes)
    assert part in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("then", ["lost", "restart", "resume"])
def test_devices_of_one_site_leave_and_come_back_as_those_of_the_cell(seven, then):
    """Who comes back in the middle of an upload has its share of the band again."""
    coming = (
        "devices.0.presence={kind: onoff, on: 80 ms, off: 30 ms}",
        f"devices.0.on_leave={then}",
    )
    cell = simulate(seven(*NEAR, *coming, "network.layout=single"))
    site = simulate(seven(*NEAR, *coming, SITES))
    uploads = cell.spans[cell.spans.phase == "upload"].groupby(["round", "device"]).size()
    assert (uploads.max() > 1) == (then == "resume") or then == "restart"
    assert site.rounds["time_s"].to_numpy() == pytest.approx(
        cell.rounds["time_s"].to_numpy(), rel=1e-12
    )
    for column in ("finish_s", "bits_up", "energy_j"):
        assert site.device_rounds[column].to_numpy() == pytest.approx(
            cell.device_rounds[column].to_numpy(), rel=1e-12, nan_ok=True
        )
