"""The ViT and the tied LSTM: counts of the papers, torch's own modules, costs as torch counts."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from edgesim.seeds import Seeds
from fl.accounting import step_cost
from fl.errors import ModelError
from fl.masks.thresholds import carriers
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Embedding, Lstm
from fl.models.layers.sequence_layers import TiedDecoder
from fl.models.own_modules.operation_flops import flop_counter


def weights(architecture, scale=0.1):
    """First weights with something added, in double precision: no norm is 1 or 0."""
    w = torch.from_numpy(architecture.initial(Seeds(0).stream("init"))).double()
    return w + scale * torch.from_numpy(np.random.default_rng(1).standard_normal(len(w)))


def test_the_vit_of_spafl():
    """SpaFL, Table 4: its program's masked variant has no biases in the masked layers."""
    architecture = build("vit", (3, 32, 32), 10)
    slots = {slot.name: slot for slot in architecture.layout.slots}
    assert architecture.layout.size == 1_988_490
    in_blocks = sum(slot.size for name, slot in slots.items() if name.startswith("transformer1."))
    assert in_blocks == 328_704
    biases = [s.size for n, s in slots.items() if n.startswith("transf") and s.kind == "bias"]
    assert architecture.layout.size - sum(biases) == 1_985_418
    assert sum(architecture.macs.values()) == 154_148_096
    masked = carriers(architecture.layout, output=False)
    assert sum(slot.shape[0] for slot in masked) == 12_288
    attention = [slot for slot in masked if "linear" not in slot.name]
    assert sum(slot.shape[0] for slot in attention) == 9_984
    units = {g.name: g.units for g in architecture.layout.groups.values() if g.hidden}
    assert units == {
        f"transformer{i}.{part}": count
        for i in range(1, 7)
        for part, count in (("heads", 8), ("neurons", 256))
    }
    assert not architecture.normalises  # layer norm has no statistics of the batch


def test_the_lstm_of_fedlps_on_reddit():
    architecture = build("reddit-lstm", (9,), 10_000)
    assert architecture.layout.size == 2_845_392
    assert sum(architecture.macs.values()) == 9 * 2_831_744
    # of a step on 5 rows: FedLPS's program has 145.037 MFLOP, and counts neither time nor decoder
    everything = np.ones(architecture.layout.size, dtype=bool)
    assert 5 * step_cost(architecture, everything, ~everything).flops == 764_570_880
    tied = architecture.layout.slots[0]
    assert tied.shape == (10_000, 200) and tied.kind == "embedding"
    # the second LSTM layer and the embedding share their units: what one drops, the other does
    hidden = {g.name: g.units for g in architecture.layout.groups.values() if g.hidden}
    assert hidden == {"embedding1": 200, "lstm1": 256}


def test_a_transformer_block_is_torchs():
    """`nn.TransformerEncoderLayer` has biases of queries, keys and values: they are 0 here."""
    from fl.models.layers.layer import Signal
    from fl.models.layers.sequence_layers import STREAM, TransformerBlock

    block = TransformerBlock(16, heads=2, head_size=8, hidden=24)
    parts, _ = block.wire(Signal((5, 16), STREAM), "b")
    rng = torch.Generator().manual_seed(0)
    tensors = tuple(torch.randn(p.shape, generator=rng, dtype=torch.float64) for p in parts)
    own = dict(zip((part.name for part in parts), tensors, strict=True))
    torchs = nn.TransformerEncoderLayer(
        16, 2, 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    ).double()
    given = {
        "self_attn.in_proj_weight": torch.cat([own["b.query"], own["b.key"], own["b.value"]]),
        "self_attn.in_proj_bias": torch.zeros(48, dtype=torch.float64),
        "self_attn.out_proj.weight": own["b.out.weight"],
        "self_attn.out_proj.bias": own["b.out.bias"],
    }
    for layer in ("linear1", "linear2"):
        given |= {f"{layer}.{word}": own[f"b.{layer}.{word}"] for word in ("weight", "bias")}
    for layer in ("norm1", "norm2"):
        given |= {
            f"{layer}.weight": own[f"b.{layer}.scale"],
            f"{layer}.bias": own[f"b.{layer}.shift"],
        }
    torchs.load_state_dict(given)
    x = torch.randn(3, 5, 16, generator=rng, dtype=torch.float64)
    assert torch.allclose(block.apply(x, tensors, None), torchs(x), atol=1e-12)


def test_the_ends_of_the_vit():
    """Patches are a convolution with a stride, the class token comes first, positions are added."""
    architecture = build("vit", (1, 8, 12), 3)
    w = weights(architecture)
    named = architecture.layout.named(w)
    patches, token, norm, head = (architecture.layers[i] for i in (0, -3, -2, -1))
    x = torch.rand(2, 1, 8, 12, dtype=torch.float64)
    own = [named[f"patches1.{word}"] for word in ("weight", "bias", "class_token", "positions")]
    tokens = patches.apply(x, tuple(own), None)
    assert tokens.shape == (2, 7, 128)
    assert torch.equal(tokens[1, 0], own[2] + own[3][0])
    square = (x[1, :, 4:, 4:8] * own[0][7]).sum() + own[1][7] + own[3][5, 7]  # row 1, column 1
    assert tokens[1, 5, 7] == pytest.approx(float(square), rel=1e-12)
    torchs = nn.LayerNorm(128).double()
    torchs.load_state_dict({"weight": named["layernorm1.scale"], "bias": named["layernorm1.shift"]})
    ours = norm.apply(token.apply(tokens, (), None), (torchs.weight, torchs.bias), None)
    assert torch.allclose(ours, torchs(tokens[:, 0]), atol=1e-12)
    assert head.wire(norm.wire(token.output(architecture._wired[0][1]), "n")[1], "l")[1].shape == (
        3,
    )


def test_the_tied_lstm_is_torchs_and_its_gradient_is_the_sum_of_both_uses():
    small = (
        Embedding(11, 6, tied=True),
        Lstm(6, 7),
        Lstm(7, 6, group="embedding1"),
        TiedDecoder(11, 6, "embedding1.weight"),
    )
    architecture = Architecture("small", (5,), 11, small)
    w = weights(architecture).requires_grad_()
    named = architecture.layout.named(w)
    x, y = (torch.randint(11, (4, 5), generator=torch.Generator().manual_seed(i)) for i in (0, 1))
    y[0, 3:] = -100
    logits = architecture.logits(w, x)
    layers = [nn.LSTM(6, 7, batch_first=True).double(), nn.LSTM(7, 6, batch_first=True).double()]
    for i, layer in enumerate(layers, start=1):
        words = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        layer.load_state_dict({f"{word}_l0": named[f"lstm{i}.{word}"].detach() for word in words})
    vectors = named["embedding1.weight"].detach().clone().requires_grad_()
    decoder = named["embedding1.weight"].detach().clone().requires_grad_()
    theirs = layers[1](layers[0](vectors[x])[0])[0] @ decoder.T + named["decoder1.bias"].detach()
    assert torch.allclose(logits.transpose(1, 2), theirs, atol=1e-12)
    (ours,) = torch.autograd.grad(cross_entropy(logits, y), w)
    both = torch.autograd.grad(cross_entropy(theirs.transpose(1, 2), y), (vectors, decoder))
    mine = architecture.layout.named(ours)["embedding1.weight"]
    assert torch.allclose(mine, sum(both), atol=1e-12)
    assert not any(torch.allclose(mine, part, atol=1e-6) for part in both)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), [("vit", (3, 8, 8)), ("reddit-lstm", (6,))])
def test_gradients_are_differences(name, shape):
    """100 random coordinates, in double precision."""
    architecture, rng = build(name, shape, 7), np.random.default_rng(0)
    w = weights(architecture, 0.02).requires_grad_()
    x = torch.from_numpy(
        rng.integers(7, size=(2, 6)) if name[0] == "r" else rng.random((2, *shape))
    )
    y = torch.from_numpy(rng.integers(7, size=(2, 6) if name[0] == "r" else 2))
    (gradient,) = torch.autograd.grad(cross_entropy(architecture.logits(w, x), y), w)
    chosen = rng.choice(len(w), 100, replace=False)
    with torch.no_grad():
        direction = torch.zeros_like(w)
        for sign in rng.choice([-1.0, 1.0], (3, 100)):
            direction[chosen] = torch.from_numpy(sign)
            up, down = (
                cross_entropy(architecture.logits(w + step * direction, x), y)
                for step in (1e-5, -1e-5)
            )
            slope = float((up - down) / 2e-5)
            assert slope == pytest.approx(float(gradient @ direction), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("name", "shape"), [("vit", (3, 8, 8)), ("reddit-lstm", (6,))])
def test_a_step_costs_what_torch_counts(name, shape):
    architecture = build(name, shape, 50)
    w = torch.from_numpy(architecture.initial(Seeds(0).stream("init")))
    tensors = [view.requires_grad_() for view in architecture.layout.split(w)]
    x = torch.rand(2, *shape) if name == "vit" else torch.randint(50, (2, *shape))
    y = torch.zeros(2, dtype=torch.long) if name == "vit" else torch.zeros(2, 6, dtype=torch.long)
    with flop_counter() as counter:  # steps of an LSTM one by one
        cross_entropy(architecture.forward(tensors, x), y).backward()
    counted = sum(flops for flops, _ in counter.products)
    if name == "reddit-lstm":  # of 6 steps: torch leaves out the gradient by the first state
        of_states = architecture.macs["lstm1.weight_hh"] + architecture.macs["lstm2.weight_hh"]
        counted += 2 * 2 * of_states / 6
    everything = np.ones(architecture.layout.size, dtype=bool)
    cost = step_cost(architecture, everything, ~everything)
    assert 2 * cost.flops == pytest.approx(counted, rel=1e-12)


def test_a_model_for_one_label_does_not_fit_texts_with_several():
    with pytest.raises(ModelError, match="ask for a code at every step; choose reddit-lstm"):
        build("shakespeare-lstm", (9,), 50, True, at_every_step=True)
    with pytest.raises(
        ModelError, match="ask for a code behind each text; choose shakespeare-lstm"
    ):
        build("reddit-lstm", (80,), 50, True, at_every_step=False)
