"""Parameter counts and multiply-adds of the papers, initial weights, models that do not fit."""

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.accounting import Accounting, forward_flops, step_cost
from fl.errors import ModelError
from fl.models.architectures import build
from fl.models.named_models import MODELS

MNIST, CIFAR, TEXT = (1, 28, 28), (3, 32, 32), (80,)
SHAPES = {
    "vgg11": CIFAR,
    "vgg13": CIFAR,
    "vgg16": CIFAR,
    "resnet18": CIFAR,
    "spafl-conv4": CIFAR,
    "shakespeare-lstm": TEXT,
    "reddit-lstm": (9,),
}


def of_kind(layout, kind):
    return sum(slot.size for slot in layout.slots if slot.kind == kind)


def rows(layout):
    """Filters and neurons, as SpaFL counts its thresholds: rows of all weights."""
    return sum(slot.shape[0] for slot in layout.slots if slot.kind == "weight")


def roles(name, shape=MNIST):
    layout = build(name, shape, 10).layout
    return int(layout.role("features").sum()), int(layout.role("classifier").sum())


def samples(shape, count, classes=10, seed=0):
    rng = np.random.default_rng(seed)
    x = (
        rng.integers(0, classes, (count, *shape))
        if len(shape) == 1
        else rng.random((count, *shape), dtype=np.float32)
    )
    return torch.from_numpy(x)


# --- counts of the papers -----------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_share_of_inner_uses_is_a_number(name):
    shares = [part.inner for part in build(name, SHAPES.get(name, MNIST), 10).parts]
    assert {type(each) for each in shares} == {float} and {*shares} <= {0.0, 1.0}


def test_liu_cnn_has_the_weights_of_the_paper():  # Liu, Section V: 52,096 personal, 402,826 global
    assert roles("liu-cnn") == (52_096, 402_826)


def test_fedlps_cnn():  # parameter counts of FedLPS
    layout = build("fedlps-cnn", MNIST, 10).layout
    assert layout.size == 21_840
    assert [s.size for s in layout.slots if s.kind == "weight"] == [250, 5000, 16_000, 500]
    assert of_kind(layout, "bias") == 90
    assert [group.units for group in layout.groups.values() if group.hidden] == [10, 20, 50]


def test_lenet5_caffe():  # as in SpaFL and FedMAP
    architecture = build("lenet5-caffe", MNIST, 10)
    assert [slot.size for slot in architecture.layout.slots] == [500, 25_000, 400_000, 5000]
    assert architecture.layout.size == 430_500
    assert (
        rows(architecture.layout)
        == sum(g.units for g in architecture.layout.groups.values())
        == 580
    )
    assert list(architecture.macs.values()) == [288_000, 1_600_000, 400_000, 5000]


def test_conv4_of_spafl():
    """SpaFL, CIFAR-10. The paper's 807,366 parameters are ours and 1280 running statistics
    with 6 counters, which
    static batch norm does not have; its 1418 thresholds are those of another network (Conv-6)."""
    architecture = build("spafl-conv4", CIFAR, 10)
    layout = architecture.layout
    assert of_kind(layout, "weight") == 804_800
    assert of_kind(layout, "norm") == 1280
    assert layout.size == 807_366 - 1280 - 6
    assert rows(layout) == sum(group.units for group in layout.groups.values()) == 650
    expected = [3_763_200, 58_982_400, 13_107_200, 6_553_600, 65_536, 16_384, 1280]
    assert list(architecture.macs.values()) == expected
    assert sum(expected) == 82_489_600
    assert build("spafl-conv4", CIFAR, 10).layout.named(np.zeros(layout.size))[
        "linear1.weight"
    ].shape == (128, 512)


def test_vgg11_of_fedlps():  # parameter counts of FedLPS
    layout = build("vgg11", CIFAR, 10).layout
    assert layout.size == 9_231_114
    assert [g.units for g in layout.groups.values()] == [64, 128, 256, 256, 512, 512, 512, 512, 10]


def test_resnet18():
    """SpaFL: 11,159,232 parameters and 4800 thresholds are those of the convolutions; the
    linear layer and the norms are not in them."""
    architecture = build("resnet18", CIFAR, 100)
    convolutions = [
        s
        for s in architecture.layout.slots
        if s.kind == "weight" and not s.name.startswith("linear")
    ]
    assert len(convolutions) == 20
    assert sum(slot.size for slot in convolutions) == 11_159_232
    assert sum(slot.shape[0] for slot in convolutions) == 4800
    assert of_kind(architecture.layout, "norm") == 2 * 4800
    assert sum(architecture.macs[slot.name] for slot in convolutions) == 555_417_600
    assert architecture.macs["linear1.weight"] == 51_200
    assert (
        sum(group.units for group in architecture.layout.groups.values() if group.hidden)
        == 4800 - 1920
    )
    # the second convolutions of stage 1 and 2 each, and the shortcuts and second convolutions of
    # stages 2 to 4


def test_shakespeare_lstm():
    """LEAF: embedding 8, two layers of 256. Each time step costs 4 H (inputs + H) multiply-adds
    per layer.
    """
    architecture = build("shakespeare-lstm", TEXT, 90)
    assert (
        architecture.layout.size
        == 90 * 8 + 4 * 256 * (8 + 256 + 2) + 4 * 256 * (256 + 256 + 2) + 256 * 90 + 90
    )
    assert architecture.macs == {
        "lstm1.weight_ih": 80 * 1024 * 8,
        "lstm1.weight_hh": 80 * 1024 * 256,
        "lstm2.weight_ih": 80 * 1024 * 256,
        "lstm2.weight_hh": 80 * 1024 * 256,
        "linear1.weight": 256 * 90,
    }


def test_small_models():
    assert roles("mlp", (1, 8, 8)) == (64 * 64 + 64, 64 * 10 + 10)
    assert roles("digits-cnn", (1, 8, 8)) == (80 + 1168, 64 * 64 + 64 + 650)
    assert roles("liu-cnn", CIFAR) == (3 * 32 * 25 + 32 + 51_264, 64 * 64 * 128 + 128 + 1290)


@pytest.mark.parametrize("name", MODELS)
def test_logits_of_every_model_and_the_flat_vector_without_gaps(name):
    architecture = build(name, SHAPES.get(name, MNIST), 10)
    layout = architecture.layout
    ends = [s.offset + s.size for s in layout.slots]
    assert [s.offset for s in layout.slots] == [0, *ends[:-1]]
    assert ends[-1] == layout.size
    w = torch.from_numpy(architecture.initial(Seeds(0).stream("init")))
    x = samples(architecture.input_shape, 3)
    logits = architecture.logits(w, x)
    assert logits.shape == ((3, 10, 9) if architecture.at_every_step else (3, 10))
    assert logits.std() > 0
    longer = torch.cat(
        [w, torch.full((7,), torch.nan)]
    )  # coordinates behind the model's are a method's own
    assert torch.equal(architecture.logits(longer, x), logits)
    assert {s.role for s in layout.slots} == {"features", "classifier"}
    whole = [g.name for g in layout.groups.values() if not g.hidden and g.name != "tokens"]
    assert whole == [list(layout.groups)[-1]]


# --- initial weights ----------------------------------------------------------------------------


def test_split_gives_views():
    layout = build("mlp", (1, 8, 8), 10).layout
    w = np.zeros(layout.size, dtype=np.float32)
    layout.named(w)["linear2.bias"][:] = 1
    assert w.sum() == 10
    assert w[-10:].all()


def test_initial_weights_are_torchs_default_and_keyed():
    architecture = build("digits-cnn", (1, 8, 8), 10)
    w = architecture.initial(Seeds(1).stream("init"))
    assert w.dtype == np.float32
    assert np.array_equal(w, architecture.initial(Seeds(1).stream("init")))
    for name, fan_in in [
        ("conv1.weight", 9),
        ("conv1.bias", 9),
        ("conv2.weight", 72),
        ("linear1.weight", 64),
    ]:
        largest = np.abs(architecture.layout.named(w)[name]).max()
        assert 0.6 * fan_in**-0.5 < largest <= fan_in**-0.5 * (1 + 1e-6)


def test_initial_weights_of_the_other_layers():
    lstm = build("shakespeare-lstm", TEXT, 90)
    named = lstm.layout.named(lstm.initial(Seeds(0).stream("init")))
    assert named["embedding1.weight"].std() == pytest.approx(1, abs=0.1)  # 720 values N(0, 1)
    assert named["embedding1.weight"].max() > 2
    for word in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        assert (
            0.98 / 16 < np.abs(named[f"lstm1.{word}"]).max() <= 1 / 16 * (1 + 1e-6)
        )  # 1 / sqrt 256
    conv4 = build("spafl-conv4", CIFAR, 10)
    named = conv4.layout.named(conv4.initial(Seeds(0).stream("init")))
    assert (named["norm3.scale"] == 1).all()
    assert (named["norm3.shift"] == 0).all()


# --- models that do not fit ---------------------------------------------------------------------


def test_a_model_that_does_not_fit_says_so():
    with pytest.raises(ModelError, match="lenet5-caffe does not fit images of 1x8x8"):
        build("lenet5-caffe", (1, 8, 8), 10)
    with pytest.raises(
        ModelError,
        match="vgg11 does not fit images of 1x28x28: nothing is left behind a pool layer",
    ):
        build("vgg11", MNIST, 10)
    for wrong, right in (("liu_cnn", "liu-cnn"), ("MLP", "mlp")):
        with pytest.raises(ModelError, match=rf'no model "{wrong}".*did you mean "{right}"'):
            build(wrong, MNIST, 10)


def test_an_lstm_on_images_and_a_cnn_on_text():
    with pytest.raises(
        ModelError,
        match="shakespeare-lstm does not fit images of 1x28x28; choose one of mlp, digits",
    ):
        build("shakespeare-lstm", MNIST, 10)
    for name in ("mlp", "resnet18"):
        with pytest.raises(
            ModelError,
            match=f"{name} does not fit texts of 80 codes; choose one of shakespeare-lstm",
        ):
            build(name, TEXT, 90)


@pytest.mark.parametrize(("shape", "size"), [((12,), "texts of 12 codes"), ((8, 8), "8x8 codes")])
def test_whole_numbers_that_are_no_codes_are_told_what_to_be(shape, size):
    sentence = f"mlp does not fit {size}.*; .*give them as float32, pictures as uint8"
    with pytest.raises(ModelError, match=sentence):
        build("mlp", shape, 10, text=True)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "size", "macs", "flops", "round_mflop"),
    [
        ("vgg13", (3, 32, 32), 100, 9_462_180, 228_313_088, 456_876_132, 4_934_262.2),
        ("vgg16", (3, 64, 64), 200, 15_132_936, 1_253_195_776, 2_507_497_672, 27_080_974.9),
    ],
)
def test_the_larger_vggs(name, shape, classes, size, macs, flops, round_mflop):
    """As FedLPS's program counts on CIFAR-100 and Tiny-ImageNet.

    It takes 2 FLOP per multiply-add, 1 per bias and output.

    A client's round is 5 passes over 36 batches of 20, a backward pass twice a forward pass.
    """
    architecture = build(name, shape, classes)
    assert architecture.layout.size == size and sum(architecture.macs.values()) == macs
    twice = Accounting(count_biases=True, backward="twice")
    assert forward_flops(architecture, twice) == flops
    everything = np.ones(size, dtype=bool)
    step = step_cost(architecture, everything, ~everything, twice)
    assert 5 * 36 * 20 * step.flops / 1e6 == pytest.approx(round_mflop, abs=0.06)
