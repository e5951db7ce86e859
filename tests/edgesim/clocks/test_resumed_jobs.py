"""A run that was killed with jobs at work gives the bytes of one that was not."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from edgesim import simulate
from edgesim.errors import EdgesimError
from tests.edgesim.resumed_runs import assert_resumed

FADING = (
    "rounds=5",
    "network.channel.fading={kind: rayleigh, coherence: 2 ms}",
    "devices.0.idle_power=0.1 W",
    "devices.0.failure_rate=20 Hz",
    "budget.latency_threshold=20 s",
    "learning={dataset: digits, partition: {kind: labels, labels_per_device: 3}, "
    "samples_per_device: 20, model: mlp, batch_size: 10, method: {name: fedavg}}",
)
TABLES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "scores.parquet", "summary.json")
COUNTED = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "summary.json")
NOTHING = "learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}"
CLOCKS = {
    "buffered": "clock={mode: buffered, buffer: 2}",
    "until used": "clock={mode: buffered, buffer: 2, slot: until_used, in_flight: 3}",
    "asynchronous": "clock={mode: asynchronous, max_staleness: 1}",
    "window": "clock={mode: window, window: 2 ms}",
    "overcommit": "clock={mode: overcommit, over_commit: 1.4}",
}
METHODS = {
    "fedavg": "{name: fedavg, lr: 0.05}",
    "scaffold": "{name: scaffold, lr: 0.05}",
    "spafl": "{name: spafl, local_epochs: 1, lr: 0.01, delta: since_last}",
    "liu": "{name: liu, personal_lr: 0.05, global_lr: 0.05}",
    "fedlps": "{name: fedlps, lr: 0.05}",
    "fedpm": "{name: fedpm, reset_rounds: 4}",
}


@pytest.fixture
def scenario(few):
    def make(clock, method="fedavg", *changes):
        asked = ["learning.method.participants=3"] if clock == "overcommit" else []
        given = f"learning.method={METHODS[method]}", *asked, CLOCKS[clock]
        return few(*FADING, *given, *changes)

    return make


def test_overcommit_asks_more_than_the_method_needs(scenario):
    """Three are needed and int(1.4 x 3) = 4 asked; of the fourth only the work is paid for."""
    run = simulate(scenario("overcommit"))
    assert run.rounds["dispatched"].tolist() == [4] * len(run.rounds)
    assert run.rounds["arrived"].tolist() == [3] * len(run.rounds)
    others = run.device_rounds.loc[run.device_rounds["status"] != "arrived", "status"]
    assert "cancelled" in set(others) <= {"cancelled", "failed"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clock", "method"),
    [
        *((clock, "fedavg") for clock in CLOCKS),
        ("buffered", "liu"),
        *(
            pytest.param("buffered", method, marks=pytest.mark.slow)
            for method in ("scaffold", "spafl", "fedlps", "fedpm")
        ),
    ],
)
def test_killed_at_versions_it_goes_on_with_the_same_bytes(scenario, tmp_path, clock, method):
    assert_resumed(scenario(clock, method), tmp_path, (0, 3), (*TABLES, "model.safetensors"))


@pytest.mark.slow
def test_without_learning_too(scenario, tmp_path):
    given = scenario("buffered", "fedavg", NOTHING, "rounds=12")
    assert_resumed(given, tmp_path, (5, 9), COUNTED)


STILL = "network.channel.fading={kind: none}"
KEPT = "allocation.solver=kkt", "budget.latency_threshold=60 ms"
BANDS = {
    "fair": (STILL, "network.uplink.share=fair", "clock={mode: buffered, buffer: 3}"),
    "fair in fading": ("network.uplink.share=fair", "clock={mode: buffered, buffer: 2}"),
    "edf": (STILL, "network.uplink.share=edf", "clock={mode: asynchronous}"),
    "edf, some wait": (STILL, "network.uplink.share=edf", "clock={mode: tt-fed, window: 5 ms}"),
    "promises": (STILL, *KEPT, "devices.0.failure_rate=1 Hz", "clock={mode: asynchronous}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("band", BANDS)
def test_the_band_goes_on_as_it_was(scenario, tmp_path, band):
    """Uploads that are on the way share the band with others that are gone at the checkpoint."""
    method = "method: {name: pruning-only}" if band == "promises" else "method: {name: fedavg}"
    nothing = f"learning={{dataset: none, model: mlp, batch_size: 10, {method}}}"
    changes = ["rounds=20", nothing, *BANDS[band]]
    assert_resumed(scenario("buffered", "fedavg", *changes), tmp_path, (5, 9, 10), COUNTED)


WINDOWS = (NOTHING, STILL, "devices.0.failure_rate=0 Hz", "rounds=9")


@pytest.mark.slow
@pytest.mark.parametrize("share", ["fair", "edf"])
def test_the_band_is_given_back_at_its_last_change(scenario, tmp_path, share):
    """Versions 1, 3 and 7 are made at 4, 8 and 16 ms, long after anybody began or ended to send."""
    clock = "clock={mode: window, window: 2 ms}"
    given = scenario("buffered", "fedavg", *WINDOWS, clock, f"network.uplink.share={share}")
    run = assert_resumed(given, tmp_path, (1, 3, 7), COUNTED)
    sent = run.spans[run.spans.phase == "upload"]
    for made_s in (4e-3, 8e-3, 16e-3):
        assert ((sent.start_s < made_s) & (sent.end_s > made_s)).sum() > 1
        changes_s = np.concatenate([sent.start_s, sent.end_s])
        assert changes_s[changes_s <= made_s].max() < made_s - 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("share", ["fixed", "fair", "edf"])
@pytest.mark.parametrize("learns", [False, True])
def test_a_stage_may_end_at_the_very_instant_of_a_version(scenario, tmp_path, share, learns):
    """The window is the time that device 3 computes, so that it begins to send at version 0."""
    more = f"network.uplink.share={share}", "rounds=3", *([] if learns else [NOTHING])
    long = scenario("window", "fedavg", *WINDOWS[1:], *more, "clock.window=1 s", "rounds=1")
    spans = simulate(long).spans
    (computed_s,) = spans.end_s[(spans.device == 3) & (spans.phase == "train")].head(1)
    given = scenario("window", "fedavg", *WINDOWS[1:], *more, f"clock.window={computed_s!r} s")
    run = assert_resumed(given, tmp_path, (0, 1), COUNTED)
    assert run.rounds.time_s[0] == computed_s
    first = run.spans[(run.spans.device == 3) & (run.spans.phase == "upload")]
    assert first.start_s.iloc[0] == computed_s


def test_a_run_that_has_ended_cannot_be_made_longer_since_its_jobs_were_interrupted(
    scenario, tmp_path
):
    simulate(scenario("buffered", "fedavg", "rounds=2"), out=tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with pytest.raises(EdgesimError, match="jobs at work were interrupted"):
        simulate(scenario("buffered", "fedavg", "rounds=3"), out=tmp_path / "copy")
