"""Hyper-parameters of FedLPS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fl.errors import MethodError
from fl.method_base.method import param
from fl.methods._submodel_method import SubmodelMethod
from fl.methods.fedavg import weighting_by_samples
from fl.methods.fedlps.bandits import EXPLORE

BANDIT_ONLY = (
    "partitions",
    "arm_space",
    "explore",
    "xi",
    "bonus",
    "drop",
    "least_width",
    "utility_scale",
    "floor",
    "time_scale",
)


@dataclass(frozen=True, eq=False)
class FedLPSParameters(SubmodelMethod):
    """What a scenario can choose: how many units a device keeps, which, and what it minimises."""

    ratio: str = param(
        "p-ucbv",
        "share of the units to keep: P-UCBV's, within capability and budget; the capability "
        "(RCR); fixed (FLST)",
        source="FedLPS, Algorithm 2, Table II",
        choices=("p-ucbv", "capability", "fixed"),
    )
    width: float | None = param(
        None,
        "share of the units that every device keeps where ratio is fixed",
        source="FedLPS, Table II: 0.5",
        gt=0,
        le=1,
    )
    use_above: float = param(
        0.0,
        "a device uses its own model once it trained with a larger share of the units; 0.25 in the "
        "released code",
        source="FedLPS, eq. (12): at once",
        ge=0,
        le=0.99,
    )
    partitions: int = param(
        5,
        "partitions of the arm space at first, I_0",
        source="FedLPS, released code",
        ge=1,
        le=1000,
    )
    arm_space: str = param(
        "paper",
        "ratios to choose from: [0, 1), or [0.5, 1) as in the released code, where only whole "
        "devices have a choice",
        source="FedLPS, Section IV",
        choices=("paper", "head"),
    )
    explore: str = param(
        "none",
        "try any partition with probability 1/m at the m-th participation, or never",
        source="FedLPS, Algorithm 2; 1/m in the released code",
        choices=EXPLORE,
    )
    xi: float | None = param(
        None,
        "xi of (17); none: R / (K epsilon), the run's rounds per device that a round asks",
        source="FedLPS, eq. (17)",
        gt=0,
        le=1e6,
    )
    bonus: float = param(
        0.5, "rho of (17): weight of the uncertain", source="FedLPS, released code", ge=0, le=1e6
    )
    drop: float = param(
        -0.05,
        "change of accuracy, a fraction, below which lower ratios are dropped",
        source="our choice: the paper gives no value",
        le=0,
    )
    least_width: float = param(
        0.01, "no partition gets narrower", source="our choice: the paper has no least", gt=0, le=1
    )
    utility_scale: float = param(
        1.0, "factor of the accuracy in U", source="our choice: 1 is as printed", gt=0, le=1e6
    )
    floor: float | None = param(
        None,
        "epsilon halves only while xi psi epsilon stays above this",
        source="our choice: the paper does not say",
        gt=0,
        le=1e6,
    )
    time_scale: float | None = param(
        None,
        "time that counts as 1 in (15), seconds; none: mean finish time of the first round with "
        "an upload",
        source="our choice: the paper compares raw seconds",
        gt=0,
        le=1e9,
    )
    pattern: str = param(
        "learned",
        "units that are kept: learned; for a round any, the first, or those with the largest "
        "weights",
        source="FedLPS, Fig. 9",
        choices=("learned", "random", "ordered", "magnitude"),
    )
    prune_mode: str = param(
        "row",
        "what a dropped unit takes along: the weights into it, or also its bias, norm and the "
        "weights out of it",
        source="FedLPS, released code; structural: our choice",
        choices=("row", "structural"),
    )
    q_grad: str = param(
        "kept",
        "whose scores the task's loss moves: kept units', or all, whose gradients are then charged",
        source="our choice; FedLPS, eq. (11): all",
        choices=("kept", "all"),
    )
    q_init: str = param(
        "normal",
        "first scores: N(0, 1), the same in falling order, or the standardised sums |w|_J of the "
        "received weights",
        source="our choice; sorted in the released code",
        choices=("normal", "sorted", "magnitude"),
    )
    q_persist: bool = param(
        True,
        "scores stay from round to round",
        source="FedLPS, Algorithm 1, lines 17, 23; false in the released code",
    )
    mu: float = param(
        1.0,
        "weight of the distance to the received model (7)",
        source="FedLPS, Section V",
        ge=0,
        le=1e6,
    )
    lam: float = param(
        1.0, "weight of the scores' distance to |w|_J (8)", source="FedLPS, Section V", ge=0, le=1e6
    )
    reduction: str = param(
        "sum",
        "(7) and (8) as sums or means",
        source="FedLPS, eqs. (7), (8)",
        choices=("sum", "mean"),
    )
    t_norm: bool = param(
        False, "standardise |w|_J within its layer in (8)", source="our choice: not in the paper"
    )
    noise: float = param(
        0.0,
        "standard deviation of noise on the global model",
        source="none; 0.001 in the released code",
        ge=0,
        le=1,
    )
    weighting: str = weighting_by_samples("FedLPS, eq. (13)")

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        if values["ratio"] == "fixed" and values["width"] is None:
            return MethodError(
                "width",
                "is none, but ratio is fixed: give the share of the units that devices keep",
            )
        return super().conflict(values)

    @classmethod
    def by_length(cls, rounds: int, asked: int) -> dict[str, Any]:
        return super().by_length(rounds, asked) | {"xi": rounds / asked}

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        found, ratio, pattern = super().unread(values), values["ratio"], values["pattern"]
        if ratio != "fixed":
            found |= {"width": f"ratio is {ratio}"}
        if ratio != "p-ucbv":
            found |= dict.fromkeys(BANDIT_ONLY, f"ratio is {ratio}")
        if pattern != "learned":
            found |= dict.fromkeys(("q_grad", "q_init", "q_persist"), f"pattern is {pattern}")
        if not values["lam"]:
            found |= {"t_norm": "lam is 0"}
        if not values["mu"] and not (values["lam"] and pattern == "learned"):
            found |= {"reduction": "mu and lam are 0" if pattern == "learned" else "mu is 0"}
        if pattern != "learned":
            found |= dict.fromkeys(("lam", "t_norm"), "no scores are learned")
        return found

    @property
    def rows(self) -> bool:
        """Whether a dropped unit takes along the weights into it alone: ``prune_mode: row``."""
        return self.prune_mode == "row"
