"""SCAFFOLD: control variates by hand, on quadratics whose optimum FedAvg misses."""

import pytest
import torch

from fl.errors import MethodError

PLAIN = {"local_steps": 3, "lr": 0.1}


def test_two_rounds_on_opposite_quadratics_by_hand(quadratics):
    """From 0, two steps of 0.1: y = +-0.19, c_k = -+0.95, c = 0; then y_1 = 0.0095."""
    start, play = quadratics("scaffold", [1.0, 1.0], [1.0, -1.0], local_steps=2, lr=0.1)
    state = play(start)
    assert [state.local[k][0].item() for k in (0, 1)] == pytest.approx([-0.95, 0.95], abs=1e-6)
    assert state.memo["control"][0].item() == pytest.approx(0, abs=1e-7)
    alone = play(state, devices=[0])
    assert alone.w[0].item() == pytest.approx(0.0095, abs=1e-6)


def test_both_rounds_of_each_device_beside_fedavg(quadratics):
    """Round 1: y = +-0.19 in both methods; round 2: +-0.0095, where FedAvg has +-0.19 again."""
    expected = {"scaffold": (0.19, 0.0095), "fedavg": (0.19, 0.19)}
    for name, (first, second) in expected.items():
        start, play = quadratics(name, [1.0, 1.0], [1.0, -1.0], local_steps=2, lr=0.1)
        state = play(start)
        assert state.w[0].item() == pytest.approx(0, abs=1e-7)
        for before, y in ((start, first), (state, second)):
            alone = [play(before, devices=[k]).w[0].item() for k in (0, 1)]
            assert alone == pytest.approx([y, -y], abs=1e-6)


@pytest.mark.slow
def test_the_limit_is_the_optimum_that_fedavg_misses(quadratics):
    """Curvatures 1 and 3, centres 1 and -1: the sum is least at -0.5."""
    expected = {
        "scaffold": (-0.211210, -0.373377, -0.5),
        "fedavg": (-0.211210, -0.291318, -0.340266),
    }
    for name, (first, second, limit) in expected.items():
        state, play = quadratics(name, [1.0, 3.0], [1.0, -1.0], local_steps=5, lr=0.1)
        reached = []
        for _ in range(30):
            state = play(state)
            reached.append(state.w[0].item())
        assert reached[:2] == pytest.approx([first, second], abs=2e-6)
        assert reached[-1] == pytest.approx(limit, abs=1e-5)


def test_who_was_not_asked_counts_in_the_servers_variate(quadratics):
    """One of two devices: c = 0.5 x (-0.95)."""
    start, play = quadratics("scaffold", [1.0, 1.0], [1.0, -1.0], local_steps=2, lr=0.1)
    state = play(start, devices=[0])
    assert state.memo["control"][0].item() == pytest.approx(-0.475, abs=1e-6)


def test_the_first_round_is_fedavg_to_the_byte_and_the_variates_have_their_mean(bench):
    _, fedavg = bench.play("fedavg", rounds=1, **PLAIN)
    _, state = bench.play("scaffold", rounds=1, **PLAIN)
    assert torch.equal(state.w, fedavg.w)
    _, later = bench.play("scaffold", rounds=3, **PLAIN)
    mean = sum(later.local.values()) / len(later.local)
    assert torch.allclose(mean, later.memo["control"], atol=1e-6)
    _, other = bench.play("fedavg", rounds=3, **PLAIN)
    assert not torch.allclose(later.w, other.w, atol=1e-4)


def test_it_sends_twice_the_bits_and_computes_as_fedavg(bench):
    fedavg, method = bench.method("fedavg"), bench.method("scaffold")
    a, b = fedavg.payload(0.0), method.payload(0.0)
    assert (b.bits_down, b.bits_up) == (2 * a.bits_down, 2 * a.bits_up)
    assert method.stages(0, 0.0) == fedavg.stages(0, 0.0)


@pytest.mark.parametrize("key, value", [("momentum", 0.9), ("weight_decay", 0.1), ("clip", 1.0)])
def test_other_steps_than_those_of_plain_sgd_are_refused(bench, key, value):
    with pytest.raises(MethodError, match=f"{key}.*plain SGD"):
        bench.method("scaffold", **{key: value})


def test_the_servers_step_scales_the_mean_change(bench):
    (_, half), (_, whole) = (
        bench.play("scaffold", rounds=1, server_lr=rate, **PLAIN) for rate in (0.5, 1.0)
    )
    start = bench.method("scaffold").start().w
    assert torch.allclose(half.w - start, 0.5 * (whole.w - start), atol=1e-7)
