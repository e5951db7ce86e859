"""The checks between sections: what is right in each, but does not fit together."""

from __future__ import annotations

from collections.abc import Sequence

from edgesim.scenario.allocation.allocation_schema import AllocationSection
from edgesim.scenario.checks.device_checks import check_devices
from edgesim.scenario.checks.interference_checks import check_network
from edgesim.scenario.clock.clock_schema import OVERLAPPING
from edgesim.scenario.hardware.device_schema import DeviceClass
from edgesim.scenario.hierarchy.tiers_checks import check_tiers
from edgesim.scenario.key_docs import example_of
from edgesim.scenario.learning.learning_schema import LearningSection
from edgesim.scenario.network_schema import AMONG_SENDERS, NetworkSection
from edgesim.scenario.radio.layout_checks import check_power_control
from edgesim.scenario.schema import ScenarioKeys
from edgesim.scenario.section import ValueRefusedError

WITH_LAWS = ("kkt", "equal", "proportional")  # solvers that know other rates than Shannon's
# keys of learning that nothing reads where nothing is trained
OF_TRAINING = ("partition", "validation", "inputs", "loss", "metric", "executor", "device")
NEEDS_LAWS = f"needs one of the solvers {', '.join(WITH_LAWS)}, without resource_blocks"


def check_sections(scenario: ScenarioKeys) -> None:
    """Refuse what is right in each section, but does not fit together.

    Raises:
        ValueRefusedError: with the path of the key.
    """
    check_devices(scenario)
    if scenario.clock.mode == "deadline" and scenario.budget.latency_threshold_s is None:
        example = "budget: {latency_threshold: 25 ms}"
        problem = f"is deadline, which needs budget.latency_threshold; write for instance {example}"
        raise ValueRefusedError(problem, keys=("clock", "mode"))
    if scenario.allocation.rate == "quantile" and scenario.budget.latency_threshold_s is None:
        example = "budget: {latency_threshold: 25 ms}"
        problem = "is quantile, which needs a threshold that a device can miss"
        raise ValueRefusedError(
            f"{problem}; write for instance {example}", keys=("allocation", "rate")
        )
    if scenario.tiers is not None:
        check_tiers(scenario.tiers, scenario)
    stop = scenario.stop
    if stop is not None and stop.time_s is None and stop.jobs is None:
        raise ValueRefusedError("is empty; write time: 1 h or jobs: 1000", keys=("stop",))
    if scenario.server is not None and scenario.tiers is not None:
        problem = "is not read with tiers, whose edges and cloud never fail; remove it"
        raise ValueRefusedError(problem, keys=("server",))
    check_network(scenario)
    _check_adaptation(scenario)
    _check_shared_band(scenario.network, scenario.devices)
    _check_jobs_that_go_on(scenario)
    if scenario.network.power_control is not None:
        network, allocation = scenario.network, scenario.allocation
        solver = None if _knows_laws(allocation) else f"{NEEDS_LAWS}, not {allocation.solver}"
        check_power_control(network.noise, network.channel.path_loss, network.uplink.share, solver)
    _check_learning(scenario.learning)


def _check_jobs_that_go_on(scenario: ScenarioKeys) -> None:
    """A job that goes on later keeps its share of the band meanwhile."""
    share, solver = scenario.network.uplink.share, scenario.allocation.solver
    if share not in ("fixed", "slots"):
        gives = f"network.uplink.share: {share} gives it away; write fixed, or lost"
    elif scenario.clock.mode in OVERLAPPING and solver != "equal":
        gives = f"allocation.solver: {solver} gives it away; write equal, or lost"
    else:
        return
    for i, each in enumerate(scenario.devices):
        for name in ("on_leave", "on_failure"):
            if (value := getattr(each, name)) != "lost":
                problem = f"is {value}, which keeps the device's share of the band, and {gives}"
                raise ValueRefusedError(problem, keys=("devices", i, name))


def _check_adaptation(scenario: ScenarioKeys) -> None:
    """A law of the ratio within a share needs a noise density, and solvers that know laws."""
    section, network, allocation = (
        scenario.network.adaptation,
        scenario.network,
        scenario.allocation,
    )
    if section is None or section.rate == "shannon":
        return
    if section.csi is not None and network.channel.fading.kind == "none":
        problem = "is read with fading only; remove it, or write network.channel.fading"
        raise ValueRefusedError(problem, keys=("network", "adaptation", "csi"))
    if section.csi is not None and network.channel.fading.delay_spread_s is not None:
        problem = "knows one fade of the whole band; remove it, or channel.fading.delay_spread"
        raise ValueRefusedError(problem, keys=("network", "adaptation", "csi"))
    path, given = ("network", "adaptation", "rate"), f"is {section.rate}, which"
    if network.noise.density_w_per_hz is None:
        problem = f"{given} needs a noise density; write for instance noise: -174 dBm/Hz"
        raise ValueRefusedError(problem, keys=path)
    if not _knows_laws(allocation):
        raise ValueRefusedError(f"{given} {NEEDS_LAWS}", keys=path)


def _knows_laws(allocation: AllocationSection) -> bool:
    """Whether the solver knows other rates than Shannon's; one of the user's own may."""
    own = "." in allocation.solver or "/" in allocation.solver
    return own or (allocation.solver in WITH_LAWS and not allocation.resource_blocks)


def _check_shared_band(network: NetworkSection, devices: Sequence[DeviceClass]) -> None:
    """Where the band belongs to those that send, nobody's upload is cut into pieces otherwise."""
    share, path = network.uplink.share, ("network", "uplink", "share")
    if share not in AMONG_SENDERS:
        return
    adaptation, carrier = network.adaptation, network.carrier
    refused = (
        (
            adaptation and adaptation.errors == "drawn",
            "does not repeat lost blocks; write adaptation: {errors: expected}, or share: fixed",
        ),
        (
            adaptation and adaptation.csi,
            "knows its channel; remove adaptation.csi, or write share: fixed",
        ),
        (
            adaptation and not adaptation.split,
            "splits shares; remove adaptation.split, or write share: fixed",
        ),
        (
            network.channel.fading.delay_spread_s is not None,
            "counts with a flat band; remove channel.fading.delay_spread, or write share: fixed",
        ),
        (
            carrier and carrier.tdd_clock == "slots",
            "counts with the mean over the TDD pattern; write tdd_clock: fluid, or share: fixed",
        ),
        (
            share == "edf" and network.noise.density_w_per_hz is not None,
            "is best only where the noise is a power whatever the share; "
            "write noise: -110 dBm, or share: fair",
        ),
    )
    for holds, problem in refused:
        if holds:
            raise ValueRefusedError(f"is {share}, which {problem}", keys=path)
    for i, each in enumerate(devices):
        if share == "edf" and any(
            (each.cpu.thermal, each.cpu.background, each.battery, each.radio)
        ):
            problem = f"is edf, and devices.{i} has hardware that counts sending without a pause"
            raise ValueRefusedError(f"{problem}; write share: fair", keys=path)


def _check_learning(learning: LearningSection) -> None:
    """A data set is divided; without one there is nothing to divide and nothing to train."""
    if learning.dataset != "none":
        if learning.partition is None:
            problem = f"is missing; write for instance {example_of('learning.partition')}"
            raise ValueRefusedError(problem, keys=("learning", "partition"))
        if learning.executor == "dask" and learning.device != "cpu":
            problem = (
                "is dask, which trains on processors only; write device: cpu, or another executor"
            )
            raise ValueRefusedError(problem, keys=("learning", "executor"))
        return
    for name in OF_TRAINING:
        if getattr(learning, name) != LearningSection.model_fields[name].default:
            instead = ", or write none" if name == "partition" else ""
            problem = f"is not read with dataset: none; remove it{instead}"
            raise ValueRefusedError(problem, keys=("learning", name))
