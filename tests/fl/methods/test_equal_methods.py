"""Methods that are each other where one of their parts is off."""

import pytest
import torch

from fl.method_base.method import State

FEDAVG = {"local_steps": 3, "lr": 0.1}


PARTIAL = {"personal_steps": 3, "global_steps": 3, "personal_lr": 0.2, "global_lr": 0.1}


WHOLE = {"global_steps": 3, "global_lr": 0.1, "personal_part": "none"}


def same(a: State, b: State) -> bool:
    arrays_a, arrays_b = a.to_arrays()[0], b.to_arrays()[0]
    return arrays_a.keys() == arrays_b.keys() and all(
        arrays_a[n].tobytes() == arrays_b[n].tobytes() for n in arrays_a
    )


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("fedalt", WHOLE),
        ("fedsim", WHOLE),
        ("liu", WHOLE | {"warmup_steps": 4}),
        ("liu", WHOLE | {"update": "simultaneous"}),
        ("pruning-only", FEDAVG | {"warmup_steps": 2}),
    ],
)
def test_nothing_personal_and_nothing_pruned_is_fedavg_to_the_byte(bench, name, params):
    _, fedavg = bench.play("fedavg", **FEDAVG)
    method, state = bench.play(name, rho=0.0, **params)
    assert same(state, fedavg)
    assert not torch.equal(state.w, method.start().w)


@pytest.mark.parametrize(
    ("plain", "update"), [("fedalt", "alternating"), ("fedsim", "simultaneous")]
)
@pytest.mark.parametrize("warmup", [1, 5])
def test_nothing_pruned_is_personalisation_only(bench, plain, update, warmup):
    _, expected = bench.play(plain, **PARTIAL)
    _, state = bench.play("liu", rho=0.0, update=update, warmup_steps=warmup, **PARTIAL)
    assert same(state, expected)


def test_the_pruning_of_liu_without_a_personal_part_is_pruning_only(bench):
    _, a = bench.play("liu", rho=0.5, **WHOLE)
    _, b = bench.play("pruning-only", rho=0.5, **FEDAVG)
    assert same(a, b)


@pytest.mark.slow
def test_methods_differ_where_they_should(bench):
    states = [
        bench.play(n, rho=r, **p)[1]
        for n, r, p in [("fedalt", 0, PARTIAL), ("fedsim", 0, PARTIAL), ("liu", 0.5, PARTIAL)]
    ]
    assert not same(states[0], states[1])
    assert not same(states[0], states[2])


@pytest.mark.parametrize("name", ["fedprox", "fedopt", "feddyn"])
def test_terms_and_the_servers_steps_are_neither_sent_nor_charged(bench, name):
    fedavg, method = (bench.method(each, local_steps=3) for each in ("fedavg", name))
    assert method.payload(0.0) == fedavg.payload(0.0)
    assert method.payload(0.0).bits_up == 32 * bench.task.layout.size
    assert method.stages(0, 0.0) == fedavg.stages(0, 0.0)


@pytest.mark.parametrize("name", ["efd", "fedmp"])
def test_half_the_units_send_and_compute_a_model_of_that_size(bench, name):
    """Channels 4 and 8, 32 neurons: 40 + 296 + 1,056 + 330 weights and biases.

    Multiply-adds: 64 x 4 x 9, 16 x 8 x 4 x 9, 32 x 32 and 32 x 10, each forward, by weights and,
    but for the first layer, by inputs.
    """
    method = bench.method(name, width=0.5, local_steps=3)
    (job,) = bench.jobs(method, method.start(), devices=[0])
    assert job.payload.bits_down == job.payload.bits_up == 32 * 1722
    (stage,) = job.stages
    assert stage.work.flops == 3 * 16 * 2 * (3 * (2304 + 4608 + 1024 + 320) - 2304)
