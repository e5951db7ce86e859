"""Keys without effect beside others are errors; a comparison of schemes may share them."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.runs.setup import set_up
from edgesim.scenario.loader import load

OWN = Path(__file__).parents[4] / "examples" / "own_scenario.yaml"
DEMO = OWN.parent.parent / "scenarios" / "demo.yaml"
METHOD = "learning.method={name: liu, %s}"
UNREAD = {
    (
        "accounting={mask_overhead: bitmap}",
    ): "accounting.mask_overhead is bitmap, which fedavg does not read",
    (
        "accounting={sparse_efficiency: 0.5}",
    ): "accounting.sparse_efficiency is 0.5, which fedavg does not read",
    (
        "devices.0.receive_power=1 W",
    ): r"devices\S* ?\S*receive_power is not read with downlink: ideal",
    (METHOD % "rho: 0.5, rho_max: 0.9",): "learning.method.rho_max is not read where rho is fixed",
    (
        METHOD % "personal_part: none, personal_lr: 9.0",
    ): "learning.method.personal_lr is not read where personal_part",
    ("network.downlink={mode: ideal, bandwidth: 1 Hz}",): "reads no bandwidth",
}


@pytest.mark.parametrize("changes", UNREAD)
def test_a_key_without_effect_is_an_error(changes):
    with pytest.raises(ScenarioError, match=UNREAD[changes]):
        set_up(load(OWN, changes))


def test_where_they_have_an_effect_they_are_read():
    set_up(load(OWN, [METHOD % "rho: 0.5, personal_lr: 0.1", "accounting={mask_overhead: bitmap}"]))
    set_up(
        load(
            OWN,
            ["devices.0.receive_power=1 W", "network.downlink={mode: broadcast, tx_power: 30 dBm}"],
        )
    )


ACCOUNTING = {"mask_overhead": "bitmap", "sparse_efficiency": 0.5}
SPARSE = {
    "cs": ["mask_overhead"],
    "fedspa": ["mask_overhead", "sparse_efficiency"],
    "fedpm": ["sparse_efficiency"],
    "fedmap": ["sparse_efficiency"],
    "depthfl": [],
}


@pytest.mark.parametrize("key", ACCOUNTING)
@pytest.mark.parametrize("name", SPARSE)
def test_a_method_with_masks_of_its_own_reads_what_it_is_charged_by(name, key):
    changes = [f"learning.method={{name: {name}}}", f"accounting={{{key}: {ACCOUNTING[key]}}}"]
    if key in SPARSE[name]:
        set_up(load(OWN, changes))
    else:
        with pytest.raises(
            ScenarioError, match=f"accounting.{key} is .*, which {name} does not read"
        ):
            set_up(load(OWN, changes))


def test_schemes_of_one_file_share_conventions():
    set_up(load(DEMO, ["accounting={mask_overhead: bitmap}"], label="fedavg"))
