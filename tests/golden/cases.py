"""The runs whose bytes are kept: shipped scenarios in short, every method, solver, executor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgesim.scenario.base_file import read_with_base
from edgesim.scenario.overrides import scheme_labels
from fl.methods import available
from tests.golden.scenario_texts import TEXTS

ROOT = Path(__file__).parents[2]

PARAMS = {
    "liu": "personal_lr: 0.05, global_lr: 0.05",
    "fedalt": "personal_lr: 0.05, global_lr: 0.05",
    "fedsim": "personal_lr: 0.05, global_lr: 0.05",
    "fedmap": "phase_rounds: 1, lr: 0.05",
    "spafl": "local_epochs: 1, lr: 0.01",
    "local": "local_epochs: 1, lr: 0.01",
    "prunefl": "lr: 0.05, reconfigure_every: 1",
    "lotteryfl": "lr: 0.05, accuracy_to_prune: 0",
    "hermes": "lr: 0.05, accuracy_to_prune: 0",
    "pfedme": "local_steps: 3, lr: 0.02",
}
ONE_ROUND = ("rounds=1", "evaluate.every=1")
DIGITS = ("learning.dataset=digits", "learning.model=digits-cnn", *ONE_ROUND)
TEN = (
    *DIGITS,
    "devices.0.count=10",
    "learning.method.participants=3",
    "learning.method.local_steps=3",
)
SHORT = {
    "all-methods": ONE_ROUND,
    "baselines": (*ONE_ROUND, "learning.method.local_steps=5"),
    "clocks": ("rounds=4", "evaluate.every=2"),
    "demo": ONE_ROUND,
    "handovers": ("rounds=2", "evaluate.every=2"),
    "hierarchy": ("rounds=2",),
    "network": (*ONE_ROUND, "network.layout={kind: hex, rings: 0}", "devices.0.count=12"),
    "devices": ("rounds=40", "learning.dataset=none", "learning.partition=none"),
    "four-papers": ONE_ROUND,
    "ladder": (*ONE_ROUND, "network.fidelity=errors"),
    "liu-20mhz-per-device": DIGITS,
    "liu-20mhz-shared": DIGITS,
    "fedlps-fig6-mnist": TEN,
    "fedlps-fig9-mnist": TEN,
    "fedlps-table1-mnist": (*TEN, "schemes.FedRep.learning.method.head_steps=1"),
    "fedlps-table2-mnist": TEN,
    "fedmap-shakespeare": (*DIGITS, "learning.partition.kind=iid", "devices.0.count=12"),
    "liu-discrepancies": ONE_ROUND,
    "liu-table1": ONE_ROUND,
    "planning-under-fading": ("rounds=3",),
    "presence": ("rounds=8",),
    "urban-macro": ("rounds=1",),
}  # file -> what makes it short; DIGITS where it is not named

SLOW = {"all-methods"}  # first and last scheme only
SAME_IN_SHORT = {  # schemes that give the bytes of another case in so few rounds
    "fedlps-table1-mnist": {"FedLPS without pull", "FedRolex"},
    "fedlps-table2-mnist": {"RCR-Fix"},
    "fedmap-posterior-fmnist": {"FjORD averaging", "FedRolex"},
    "fedmap-shakespeare": {"FedMAP FjORD averaging", "static"},
    "liu-discrepancies": {"calibrated"},
    "liu-fig3": {None},
    "liu-fig4": {"LocalAlt"},
    "liu-fig6": {None},
    "spafl-table2-fmnist": {"SpaFL"},
}

EXECUTORS = {  # how -> methods
    "resident": ("fedavg", "liu", "fedlps"),
    "pool": ("fedavg",),
    "batched": ("fedavg", "fedlps"),
}

LIU = "learning.method={name: liu}"
DENSITY = "network.noise=-180 dBm/Hz"
FADING = "network.channel.fading={kind: rayleigh, coherence: 20 ms}"
DEADLINE = "clock.mode=deadline"
RECLAIM = "network.uplink.share=reclaim"
BROADCAST = "network.downlink={mode: broadcast, tx_power: 40 dBm}"
NARROW = "network.downlink={mode: broadcast, tx_power: 40 dBm, bandwidth: 5 MHz}"
NONE = "budget={latency_threshold: none}"
STOP = "allocation.when_infeasible=stop"
TOO_SHORT = "budget.latency_threshold=10 ms"
TIGHT = "budget.latency_threshold=250 ms"
LEAST_CLOCK = "devices.0.cpu.min_frequency=500 MHz"
RECEIVES = "devices.0.receive_power=300 mW"
FAILS = "devices.0.failure_rate=0.5 Hz"


def _by(solver: str, *changes: str) -> tuple[str, ...]:
    return (f"allocation.solver={solver}", *changes)


def _share(rule: str) -> str:
    return f"network.uplink.share={rule}"


FOURS = {
    "kkt": _by("kkt", LIU, TIGHT),
    "kkt-density-fading": _by("kkt", LIU, TIGHT, DENSITY, FADING),
    "kkt-deadline-fading": _by("kkt", LIU, TIGHT, DEADLINE, FADING),
    "kkt-reclaim-broadcast": _by("kkt", LIU, TIGHT, RECLAIM, BROADCAST, RECEIVES),
    "kkt-too-short": _by("kkt", LIU, TOO_SHORT),
    "kkt-stop": _by("kkt", LIU, TIGHT, STOP),
    "fair": _by("fair", LIU, TIGHT),
    "fair-density-deadline": _by("fair", LIU, TIGHT, DENSITY, DEADLINE, FADING),
    "alpha-fair": _by("alpha-fair", LIU, TIGHT, "allocation.alpha=2"),
    "alpha-fair-density": _by("alpha-fair", LIU, TIGHT, DENSITY, FADING),
    "fair-too-short": _by("fair", LIU, TOO_SHORT),
    "latency": _by("latency", NONE),
    "latency-density": _by("latency", NONE, DENSITY, FADING),
    "latency-liu-reclaim": _by("latency", LIU, NONE, RECLAIM),
    "energy": _by("energy", LEAST_CLOCK),
    "energy-density": _by("energy", DENSITY, FADING),
    "energy-deadline": _by("energy", DEADLINE, FADING, NARROW),
    "energy-too-short": _by("energy", TOO_SHORT),
    "equal": _by("equal", LIU, TIGHT),
    "equal-none": _by("equal", NONE, DENSITY),
    "equal-deadline-reclaim": _by("equal", LIU, TIGHT, DEADLINE, RECLAIM, FADING),
    "proportional": _by("proportional", LIU, TIGHT, FADING),
    "proportional-reclaim-density": _by("proportional", LIU, NONE, RECLAIM, DENSITY),
    "convex": _by("convex", LIU, TIGHT),
    "convex-density-deadline": _by("convex", LIU, TIGHT, DENSITY, DEADLINE),
    "convex-fair": _by("convex-fair", LIU, TIGHT),
    "convex-fair-density": _by("convex-fair", LIU, TIGHT, DENSITY),
    "convex-latency": _by("convex-latency", NONE),
    "convex-latency-density": _by("convex-latency", NONE, DENSITY),
    "convex-energy": _by("convex-energy", LEAST_CLOCK),
    "convex-energy-density": _by("convex-energy", DENSITY),
    "failures": _by("equal", LIU, TIGHT, FAILS, FADING, "seed=3"),
    "bitmap-sparse": _by(
        "kkt",
        LIU,
        TIGHT,
        "accounting={bits_per_weight: 16, mask_overhead: bitmap, sparse_efficiency: 0.5}",
    ),
    "entropy-twice": _by(
        "kkt",
        LIU,
        TIGHT,
        "accounting={mask_overhead: entropy, backward: twice, count_biases: true}",
    ),
}
CROWDS = {
    "kkt": _by("kkt"),
    "equal-deadline-fading": _by("equal", DEADLINE, FADING, "learning.method.rho_max=0.6"),
    "latency-density": _by("latency", NONE, DENSITY),
    "fedalt": _by("proportional", "learning.method={name: fedalt, personal_steps: 3}", DEADLINE),
    "fedavg-selected": _by("equal", "learning.method={name: fedavg, participants: 150}"),
    "processes-reclaim": _by("equal", RECLAIM, FADING, DEADLINE),
    "processes-broadcast": _by("kkt", BROADCAST, "rounds=2"),
}


@dataclass(frozen=True)
class Case:
    """One run: a file of the repository or one of TEXTS, one of its schemes, what is changed."""

    name: str
    source: Path | str
    changes: tuple[str, ...] = ()
    label: str | None = None

    @property
    def trains(self) -> bool:
        """Do its bytes depend on torch?"""
        text = TEXTS.get(self.source) or Path(self.source).read_text(encoding="utf-8")
        return "dataset: none" not in text


def method(name: str, *changes: str) -> tuple[str, ...]:
    """The changes that let EIGHT learn by a method."""
    params = PARAMS.get(name, "lr: 0.05")
    return f"learning.method={{name: {name}, {params}}}", *changes


def shipped() -> list[Case]:
    """Every scheme of every shipped scenario but SAME_IN_SHORT; of slow ones the first and last."""
    cases = []
    for path in sorted((ROOT / "scenarios").rglob("*.yaml")):
        if {"tuning", "tuned"} & {*path.relative_to(ROOT).parts}:  # the files beside, with
            continue  # samples held out or other step sizes
        changes = SHORT.get(path.stem, DIGITS)
        labels = scheme_labels(read_with_base(path)[0])
        labels = labels[:: len(labels) - 1] if path.stem in SLOW else labels
        same = SAME_IN_SHORT.get(path.stem, ())
        cases += [
            Case(f"scenario:{path.stem}:{label or 'all'}".replace(" ", "-"), path, changes, label)
            for label in labels
            if label not in same
        ]
    return cases


def methods() -> list[Case]:
    """Every method under both clocks by the executor `auto`, which takes stacks where it can, and
    three of them by others.
    """
    modes = ("synchronous", "deadline")
    cases = [
        Case(f"method:{name}:{mode}", "eight", method(name, f"clock.mode={mode}"))
        for name in available()
        for mode in modes
    ]
    cases += [
        Case(f"executor:{how}:{name}", "eight", method(name, f"learning.executor={how}"))
        for how, names in EXECUTORS.items()
        for name in names
    ]
    parts = {
        "dirichlet": "{kind: dirichlet, alpha: 0.3, min_samples: 5}",
        "iid": "{kind: iid}",
    }
    cases += [
        Case(f"data:{kind}", "eight", method("fedavg", f"learning.partition={what}", RECLAIM))
        for kind, what in parts.items()
    ]
    changes = method("liu", "learning.model=mlp", "allocation.solver=kkt", BROADCAST, FAILS)
    return [*cases, Case("data:mlp-broadcast-failures", "eight", changes)]


def solvers() -> list[Case]:
    """Every solver without training; many devices at once, and many as processes."""
    few = [Case(f"solver:{name}", "four", changes) for name, changes in FOURS.items()]
    many = [Case(f"crowd:{name}", "crowd", changes) for name, changes in CROWDS.items()]
    return few + many


def clocks() -> list[Case]:
    """The band where jobs overlap, by who has it, and a deadline with partial work."""
    buffered, versions = "clock={mode: buffered, buffer: 2}", "rounds=6"
    few = {
        **{share: ("allocation.solver=equal", _share(share)) for share in ("slots", "fair", "edf")},
        "fair-fading": ("allocation.solver=equal", _share("fair"), FADING),
        "promises": ("allocation.solver=kkt", LIU),
        "promises-fading": ("allocation.solver=kkt", LIU, FADING),
    }
    cases = [
        Case(f"clock:buffered-{name}", "four", (buffered, versions, *changes))
        for name, changes in few.items()
    ]
    slow = "devices.1.cpu.flops_per_cycle=4", "budget.latency_threshold=180 ms"
    return cases + [
        Case(
            f"clock:deadline-{kind}", "eight", (f"clock={{mode: deadline, partial: {kind}}}", *slow)
        )
        for kind in ("planned", "cut")
    ]


def sectors() -> list[Case]:
    """Interference by resource block, and plans by what was measured of it."""
    return [Case("sectors:resolved-measured", "sectors")]


CASES = {case.name: case for case in [*shipped(), *methods(), *solvers(), *clocks(), *sectors()]}
