"""Axes, groups of units, and which coordinates a choice of units keeps: small nets, expanded by
hand.
"""

import numpy as np
import pytest

from fl.errors import ModelError
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Conv, Embedding, Linear, Lstm, Norm
from fl.models.layers.residual_block import Residual
from fl.models.layers.weightless_layers import Flatten, Last, MaxPool, MeanPool, Relu
from fl.models.layout import Group, Layout, Slot, UnitAxis

YES, NO = True, False
CNN = Architecture(
    "tiny",
    (1, 4, 4),
    2,
    (Conv(1, 2, 3, 1), Norm(), Relu(), MaxPool(), Flatten(), Linear(8, 3), Relu(), Linear(3, 2)),
)


def expanded(layout, kept, **options):
    """Slot name -> mask as a nested list of 0 and 1."""
    return {
        name: mask.astype(int).tolist()
        for name, mask in layout.named(layout.expand(kept, **options)).items()
    }


def test_weights_by_role_and_a_role_that_is_misspelt():
    layout = CNN.layout
    assert layout.role("classifier").sum() == 8 * 3 + 3 + 3 * 2 + 2
    assert not layout.role("personal").any()  # no slot of this model has it
    with pytest.raises(ModelError, match=r"clasifier.* there are features, classifier,"):
        layout.role("clasifier")


def test_the_groups_of_a_chain_and_who_reads_them():
    layout = CNN.layout
    assert list(layout.groups.values()) == [
        Group("conv1", 2, True),
        Group("linear1", 3, True),
        Group("linear2", 2, False),
    ]
    axes = {slot.name: slot.axes for slot in layout.slots}
    assert axes["conv1.weight"] == (
        UnitAxis("conv1"),
        None,
        None,
        None,
    )  # the channels of images are no units
    assert axes["norm1.scale"] == (UnitAxis("conv1"),)
    assert axes["linear1.weight"] == (
        UnitAxis("linear1"),
        UnitAxis("conv1", repeat=4),
    )  # 2 x 2 pixels of each channel
    assert axes["linear2.weight"] == (UnitAxis("linear2"), UnitAxis("linear1"))


def test_a_unit_takes_its_row_its_norm_and_the_inputs_that_it_feeds():
    kept = expanded(CNN.layout, {"conv1": np.array([NO, YES]), "linear1": np.array([YES, NO, YES])})
    assert kept["conv1.weight"] == [[[[0] * 3] * 3], [[[1] * 3] * 3]]
    assert kept["conv1.bias"] == kept["norm1.scale"] == kept["norm1.shift"] == [0, 1]
    row = [0, 0, 0, 0, 1, 1, 1, 1]
    assert kept["linear1.weight"] == [row, [0] * 8, row]
    assert kept["linear1.bias"] == [1, 0, 1]
    assert kept["linear2.weight"] == [[1, 0, 1]] * 2
    assert kept["linear2.bias"] == [1, 1]


def test_rows_leave_biases_norms_and_inputs():
    kept = expanded(
        CNN.layout, {"conv1": np.array([NO, YES]), "linear1": np.array([YES, NO, YES])}, rows=True
    )
    assert kept["conv1.weight"] == [[[[0] * 3] * 3], [[[1] * 3] * 3]]
    assert kept["conv1.bias"] == kept["norm1.scale"] == kept["norm1.shift"] == [1, 1]
    assert kept["linear1.weight"] == [[1] * 8, [0] * 8, [1] * 8]
    assert kept["linear1.bias"] == [1, 1, 1]
    assert kept["linear2.weight"] == [[1, 1, 1]] * 2


def test_a_group_that_is_not_named_is_kept():
    assert CNN.layout.expand({}).all()
    kept = expanded(CNN.layout, {"linear2": np.array([NO, YES])})
    assert kept["linear2.weight"] == [[0] * 3, [1] * 3]
    assert CNN.layout.expand({"linear2": np.array([NO, YES])}).sum() == CNN.layout.size - 4


def test_the_gates_of_an_lstm_are_blocks():
    """Unit u of H owns the rows u, H + u, 2H + u, 3H + u of both weights, and the column u of
    weight_hh.
    """
    layout = Architecture(
        "tiny", (5,), 2, (Embedding(4, 3), Lstm(3, 2), Last(), Linear(2, 2))
    ).layout
    assert [group.name for group in layout.groups.values()] == ["embedding1", "lstm1", "linear1"]
    kept = expanded(layout, {"embedding1": np.array([YES, NO, YES]), "lstm1": np.array([NO, YES])})
    assert kept["embedding1.weight"] == [[1, 0, 1]] * 4
    assert kept["lstm1.weight_ih"] == [[0, 0, 0], [1, 0, 1]] * 4
    assert kept["lstm1.weight_hh"] == [[0, 0], [0, 1]] * 4
    assert kept["lstm1.bias_ih"] == kept["lstm1.bias_hh"] == [0, 1] * 4
    assert kept["linear1.weight"] == [[0, 1]] * 2


def test_what_a_residual_block_adds_is_one_group():
    layers = (
        Conv(1, 2, 3, 1, bias=False),
        Residual(2, 2),
        Residual(2, 3, 2),
        Residual(3, 3),
        MeanPool(),
        Linear(3, 2),
    )
    layout = Architecture("tiny", (1, 4, 4), 2, layers).layout
    outputs = {slot.name: slot.axes[0].group for slot in layout.slots if slot.kind == "weight"}
    assert outputs == {
        "conv1.weight": "conv1",
        "block1.conv1.weight": "block1.conv1",
        "block1.conv2.weight": "conv1",  # added to the stem
        "block2.conv1.weight": "block2.conv1",
        "block2.conv2.weight": "block2.conv2",
        "block2.conv3.weight": "block2.conv2",  # the shortcut, added to it
        "block3.conv1.weight": "block3.conv1",
        "block3.conv2.weight": "block2.conv2",  # the second stage
        "linear1.weight": "linear1",
    }
    kept = expanded(layout, {"conv1": np.array([YES, NO]), "block2.conv2": np.array([NO, NO, YES])})
    assert kept["block1.norm2.scale"] == [1, 0]
    assert kept["block2.conv3.weight"] == [[[[0]], [[0]]], [[[0]], [[0]]], [[[1]], [[0]]]]
    assert kept["linear1.weight"] == [[0, 0, 1]] * 2


def test_every_axis_covers_its_dimension():
    for name, shape in [
        ("resnet18", (3, 32, 32)),
        ("spafl-conv4", (3, 32, 32)),
        ("shakespeare-lstm", (80,)),
    ]:
        layout = build(name, shape, 10).layout
        for slot in layout.slots:
            assert len(slot.axes) == len(slot.shape)
            for axis, size in zip(slot.axes, slot.shape, strict=True):
                if axis is not None:
                    assert axis.units(size) == layout.groups[axis.group].units
                    assert axis.spread(np.ones(axis.units(size), dtype=bool)).shape == (size,)


def test_repeat_and_blocks_together():
    """index = (block * units + unit) * repeat + r."""
    kept = UnitAxis("g", repeat=2, blocks=2).spread(np.array([NO, YES, NO]))
    assert kept.astype(int).tolist() == [0, 0, 1, 1, 0, 0] * 2


def test_further_slots_lie_behind_and_are_kept():
    layout = CNN.layout
    scores = Slot("scores", (2, 2), 0, "score", "none", -1)
    more = layout.extended([scores, Slot("logits", (3,), 99, "logit", "none", -1)])
    assert more.size == layout.size + 7
    assert [slot.offset for slot in more.slots[-2:]] == [layout.size, layout.size + 4]
    assert more.groups == layout.groups
    kept = {"conv1": np.array([NO, YES])}
    assert np.array_equal(more.expand(kept)[: layout.size], layout.expand(kept))
    assert more.expand(kept)[layout.size :].all()
    assert (
        more.named(np.arange(more.size))["scores"].tolist()
        == (layout.size + np.arange(4)).reshape(2, 2).tolist()
    )


def test_slots_without_axes_have_no_units():
    layout = Layout((Slot("w", (3,), 0, "weight", "features", 0),))
    assert layout.groups == {}
    assert layout.expand({}).all()


@pytest.mark.parametrize(
    "kept", [{"conv9": np.ones(2, dtype=bool)}, {"conv1": np.ones(3, dtype=bool)}]
)
def test_a_group_that_is_not_there_or_not_so_large(kept):
    with pytest.raises(
        ValueError,
        match=r"there is no group conv\d of \d units; there are conv1 \[2\], linear1 \[3\]",
    ):
        CNN.layout.expand(kept)
