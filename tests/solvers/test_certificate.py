"""What methods claim, numbers that no problem has, and certificates of what is a little off."""

from dataclasses import replace

import numpy as np
import pytest

from solvers import (
    ABOUT,
    METHODS,
    InfeasibleError,
    PruningProblem,
    UncertifiedError,
    allocate,
)
from solvers.acceptance import (
    certified_solution,
)
from solvers.certificate import certify, objective_scale
from solvers.problem import FEASIBILITY_TOLERANCE


def test_every_method_says_what_it_claims_and_where_it_is_from():
    assert set(METHODS) - set(ABOUT) == {"printed"}  # for comparison in Python, not for runs
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7])
    claims = {
        method: allocate(p, method).certificate.claim
        for method in ("kkt", "equal", "printed", "convex")
    }
    assert (
        claims["kkt"] == claims["convex"] and "no shares and ratios have a lesser" in claims["kkt"]
    )
    assert "comparison" in claims["printed"] and "nothing about optimality" in claims["equal"]


def test_printed_knows_no_density():
    with pytest.raises(ValueError, match="printed knows noise of a fixed power only"):
        p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7, 9e7], snr=[3.0, 10.0, 30.0])
        allocate(p, "printed")


FIELDS = {
    "bits": -1.0, "compute_s": -1e-3, "slack_s": -np.inf, "rate_bps": 0.0, "weight": 0.0,
    "rho_min": -0.1,
    "rho_max": 1.1, "bits_fixed": -1.0, "snr": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("value", ["out of range", np.nan, np.inf])
@pytest.mark.parametrize("field", FIELDS)
def test_each_bad_number_is_one_sentence_with_field_and_device(field, value):
    good = {"bits": 1e6, "compute_s": 4e-3, "slack_s": 20e-3, "rate_bps": 4e7}
    if field == "slack_s" and value == np.inf:
        return  # no deadline: allowed
    bad = np.full(3, {"bits_fixed": 0.0, "rho_min": 0.0, "rho_max": 1.0}.get(field, 1.0))
    bad[1] = FIELDS[field] if isinstance(value, str) else value
    with pytest.raises(ValueError) as caught:
        PruningProblem(**{**good, field: bad})
    words = str(caught.value)
    assert words.startswith(f"{field} of device 1 is ") and "must be" in words and "\n" not in words


@pytest.mark.parametrize("field", FIELDS)
def test_shapes_and_words_are_named(field):
    good = {"bits": [1e6, 1e6], "compute_s": 4e-3, "slack_s": 20e-3, "rate_bps": 4e7}
    with pytest.raises(ValueError, match=f"{field} is 'much'; give a number"):
        PruningProblem(**{**good, field: "much"})
    with pytest.raises(ValueError, match=f"{field} is 1j; give a number"):
        PruningProblem(**{**good, field: 1j})
    with pytest.raises(ValueError, match="shapes"):
        PruningProblem(**{**good, "bits": [1e6, 1e6], field: np.ones((2, 2))})


@pytest.mark.parametrize(
    "value",
    [
        10**400,
        10**5000,
        "5",
        ["5", 1.0],
        np.datetime64("2020-01-01"),
        np.ma.masked_array([1e6, 1.0], [False, True]),
    ],
    ids=["huge", "unprintable", "text", "texts", "date", "masked"],
)
def test_what_is_no_number_is_one_sentence(value):
    with pytest.raises(ValueError) as caught:
        PruningProblem(value, 4e-3, 20e-3, 4e7)
    words = str(caught.value)
    assert words.startswith("bits is ") and words.endswith("one per device.") and "\n" not in words


@pytest.mark.parametrize("seed", range(40))
def test_the_advised_time_is_enough(seed):
    """Exactly what the sentence says, added to every slack."""
    rng = np.random.default_rng(seed)
    bits, rates = 10 ** rng.uniform(5, 7, 3), 10 ** rng.uniform(6, 8, 3)
    p = PruningProblem(bits, 4e-3, 20e-3, rates, rho_max=0.2)
    with pytest.raises(InfeasibleError) as caught:
        allocate(p)
    said = float(str(caught.value).split("give ")[1].split(" s more time")[0])
    assert said == pytest.approx(caught.value.extra_s, rel=1e-5)
    allocate(replace(p, slack_s=p.slack_s + said))


def test_what_is_a_little_late_is_no_better_answer():
    """Device 0 needs 1e6 / (1e8 x 20 ms) = 1/2 at rho_max = 0; 2e-9 less is late by as much and
    gains at the price.
    """
    p = PruningProblem(
        [1e6, 1e4], [0.0, 4e-6], [20e-3, 1e-4], [1e8, 1e8], [1.0, 1e3], rho_max=[0.0, 1.0]
    )
    a = allocate(p)
    assert a.share[0] == pytest.approx(0.5, rel=1e-15) and a.certificate.gap < 1e-12
    for taken, passes in ((5e-10, True), (2e-9, False)):
        share = a.share + 0.5 * taken * np.array([-1.0, 1.0])
        proof = certify(p, share, p.rho_at(share), a.multiplier)
        assert (
            proof.primal == pytest.approx(taken, rel=1e-3)
            and (proof.primal <= FEASIBILITY_TOLERANCE) == passes
        )
        if not passes:
            with pytest.raises(UncertifiedError, match=r"device 0 finishes .* after its deadline"):
                certified_solution(p, share, p.rho_at(share), a.multiplier, "kkt")


def test_a_share_below_the_least_was_gained_at_its_price():
    """Nine tenths of the time go into computing: 6e-9 less of the share is 6e-10 late, which
    passes, but it gains.
    """
    p = PruningProblem(
        [1e6, 1e4], [18e-3, 4e-6], [20e-3, 1e-4], [1e9, 1e8], [1.0, 1e3], rho_max=[0.0, 1.0]
    )
    a = allocate(p)
    share = a.share + a.share[0] * 6e-9 * np.array([-1.0, 1.0])
    proof = certify(p, share, p.rho_at(share), a.multiplier)
    gained = a.multiplier * (a.share[0] * 6e-9) / objective_scale(p, a.rho)
    assert 5e-10 < proof.primal <= FEASIBILITY_TOLERANCE
    assert proof.gap == pytest.approx(
        gained * 5 / 6, rel=1e-6
    )  # the first 1e-9 of the share is rounding


def test_a_little_waste_of_many_adds_up():
    """Band for all; half of what may be wasted by one, by each of a thousand, is 5e-6 of one
    device.
    """
    p = PruningProblem(1e6, 4e-3, 20e-3, np.full(1000, 4e12))
    a = allocate(p)
    proof = certify(p, a.share, a.rho + 5e-9, a.multiplier)
    assert proof.complementarity == pytest.approx(5e-9) and proof.gap == pytest.approx(
        5e-6, rel=1e-4
    )
    with pytest.raises(UncertifiedError, match="duality gap 5e-06"):
        certified_solution(p, a.share, a.rho + 5e-9, a.multiplier, "kkt")
