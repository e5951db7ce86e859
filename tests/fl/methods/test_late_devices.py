"""What stays of a device that was late, for every method."""

import pytest
import torch

from fl.executors.deferred_training import Trainer
from fl.methods import available
from tests.fl.conftest import view_of

KEEP = {"fedalt", "fedsim", "liu", "ditto", "fedper", "fedrep"}  # their personal weights
KEEP |= {"fedlps", "spafl", "local"}  # the whole model with its scores or thresholds
KEEP |= {
    "fedspa",
    "refl",
    "depthfl",
}  # its next mask; the update that it still has to send; its linear term
KEEP |= {"scaffold", "feddyn", "apfl"}  # its control variate; its linear term; its own model
KEEP |= {"pfedme", "fedp3", "moon"}  # theta; its own layers; the model that it trained last
KEEP |= {"lotteryfl", "hermes"}  # its mask; its mask and model
OF_ITS_OWN = {  # what stays where it is not a part of the model: of the update, and the method
    "scaffold": lambda moved, method: -moved / (method.local_steps * method.lr),
    "feddyn": lambda moved, method: -method.alpha * moved,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", available())
def test_the_server_never_hears_of_what_a_late_device_trained_and_the_device_keeps_it(bench, name):
    method = bench.method(name, participants=4)
    state, view = method.start(), view_of(bench.task)
    updates = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(method.retain(state, updates), view, updates[:3])
    without = method.aggregate(method.retain(state, updates[:3]), view, updates[:3])
    assert torch.equal(after.w, without.w)
    assert (3 in after.local) == (name in KEEP) and 3 not in without.local
    if name in KEEP:
        done = updates[3].result()
        moved, kept = done.w - state.w, after.local[3]
        if name in OF_ITS_OWN:
            assert torch.allclose(kept, OF_ITS_OWN[name](moved, method), rtol=1e-6, atol=0)
        else:
            assert torch.equal(kept, moved if name == "refl" else method.local_part(done))
        assert not torch.equal(done.w, method.received(state, 3))
