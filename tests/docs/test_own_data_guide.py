"""The files of docs/guide/own-data-and-model.md run as printed; a stand-in for what is missing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from edgesim import load, simulate

PAGE = Path(__file__).parents[2] / "docs/guide/own-data-and-model.md"
FILES = ("windows.py", "net.py", "own.yaml", "my.py", "session.py", "clothes.py", "bert.py")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the page."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:python|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for name, code in zip(FILES, blocks, strict=True):
        assert f"`{name}`" in text or f"/{name}" in text or name == "session.py"
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("label", ["liu", "fedavg", "heterofl"])
def test_the_three_files(folder, label):
    run = simulate(load("own.yaml", ["rounds=1"], label=label), allow_code=True)
    weights = run.summary["weights"]
    features = 16 * 3 * 5 + 16 + 2 * 16 + 16 * 16 * 3 + 16
    assert weights["total"] == features + 128 * 32 + 32 + 32 * 4 + 4
    assert weights["personal"] == (features if label == "liu" else 0)
    sent = run.device_rounds.bits_up.to_numpy() / 32
    if label == "heterofl":
        assert sent[0] == weights["total"] and sent[-1] < 0.3 * weights["total"]


@pytest.mark.slow
def test_the_session(folder, capsys):
    exec((folder / "session.py").read_text(), {"__name__": "session"})
    for name in ("net", "windows"):
        sys.modules.pop(name)
    assert "accuracy" in capsys.readouterr().out


def test_the_metric(folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    np.savez("real.npz", x_train=x[:40], y_train=x[:40, 0], x_test=x[40:], y_test=x[40:, 0])
    text = (folder / "own.yaml").read_text().replace("  classifier: [hidden, head]\n", "")
    (folder / "own.yaml").write_text(text)
    changes = ["learning.dataset=real.npz", "learning.partition={kind: iid}", "learning.model=mlp"]
    changes += ["learning.metric=./my.py:within_one", "rounds=1"]
    run = simulate(load("own.yaml", changes, label="fedavg"), allow_code=True)
    assert 0 < run.rounds.within_one[0] <= 1 and run.rounds.accuracy.isna().all()


def module(monkeypatch, name, **content):
    found = ModuleType(name)
    vars(found).update(content)
    monkeypatch.setitem(sys.modules, name, found)


class FashionMNIST:
    """As of torchvision: pictures as the transform makes them, labels as numbers."""

    classes = ("t-shirt", "trouser")

    def __init__(self, root, train, transform):
        self.count, self.transform = 40 if train else 20, transform

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        return self.transform(np.full((8, 8), i, dtype=np.uint8)), i % 2


def test_a_data_set_of_torchvision(folder, monkeypatch):
    def to_tensor():
        return lambda picture: torch.from_numpy(picture)[None].float() / 255

    module(monkeypatch, "torchvision")
    module(monkeypatch, "torchvision.datasets", FashionMNIST=FashionMNIST)
    module(monkeypatch, "torchvision.transforms", ToTensor=to_tensor)
    changes = ["learning.dataset=./clothes.py:load", "learning.partition={kind: iid}"]
    fedavg = "learning.method={name: fedavg, lr: 0.1}"
    text = (folder / "own.yaml").read_text().replace("  classifier: [hidden, head]\n", "")
    (folder / "own.yaml").write_text(text)
    own = load("own.yaml", ["rounds=1", "learning.model=mlp", fedavg, *changes], label="fedavg")
    run = simulate(own, allow_code=True, out="run")
    assert '"t-shirt"' in (folder / "run/partition.json").read_text()
    assert run.summary["weights"]["total"] == 64 * 64 + 64 + 2 * 64 + 2


class Bert(nn.Module):
    """As of transformers: a first argument input_ids, constant buffers, dropout, named outputs."""

    def __init__(self, config):
        super().__init__()
        size = config.hidden_size
        self.register_buffer("position_ids", torch.arange(64)[None], persistent=False)
        self.words, self.places = nn.Embedding(config.vocab_size, size), nn.Embedding(64, size)
        self.query, self.dense = nn.Linear(size, size), nn.Linear(size, size)
        self.inner, self.outer = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.norm, self.dropout = nn.LayerNorm(size), nn.Dropout(0.1)
        self.classifier = nn.Linear(size, config.num_labels)

    def forward(self, input_ids, labels=None):
        places = self.places(self.position_ids[:, : input_ids.shape[1]])
        x = self.norm(self.words(input_ids) + places)
        x = x + self.dense((self.query(x) @ x.transpose(1, 2)).softmax(2) @ x)
        x = self.norm(x + self.outer(torch.relu(self.inner(x))))
        return SimpleNamespace(loss=None, logits=self.classifier(self.dropout(x[:, 0])))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "heterofl"])
def test_a_model_of_hugging_face(folder, monkeypatch, method):
    parts = {"BertConfig": SimpleNamespace, "BertForSequenceClassification": Bert}
    module(monkeypatch, "transformers", **parts)
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(2000, size=(60, 9)), rng.integers(3, size=60)
    np.savez(
        "text.npz", x_train=codes[:48], y_train=labels[:48], x_test=codes[48:], y_test=labels[48:]
    )
    changes = ["learning.dataset=text.npz", "learning.partition={kind: iid}"]
    changes += ["learning.model=./bert.py:small", "learning.classifier=[classifier]"]
    changes += [f"learning.method={{name: {method}, lr: 0.1}}", "rounds=1"]
    run = simulate(load("own.yaml", changes, label=method), allow_code=True)
    sent = run.device_rounds.bits_up.to_numpy() / 32
    # the 128 neurons behind `inner` are units: half of them saves 64 * (64 + 1 + 64) weights
    assert sent[0] - sent[-1] == (64 * 129 if method == "heterofl" else 0)
