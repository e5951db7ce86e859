"""The plain one-thread PyTorch loop that all contenders are held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl.contracts import Job
from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Conv, Embedding, Linear, Lstm, Norm
from fl.models.layers.residual_block import Residual
from fl.models.layers.weightless_layers import Flatten, Last, MaxPool, MeanPool, Relu
from fl.task import LearningTask
from fl.training.local_sgd import samples


class LstmLayer(nn.Module):
    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, size, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class LastStep(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, -1]


class MeanOfChannels(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3))


def batch_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, track_running_stats=False)


class BasicBlock(nn.Module):
    """He et al., CVPR 2016, with a projection where the shape changes."""

    def __init__(self, layer: Residual) -> None:
        super().__init__()
        inputs, outputs, stride = layer.inputs, layer.outputs, layer.stride
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = batch_norm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2, self.shortcut = batch_norm(outputs), nn.Sequential()
        if len(layer.convolutions) == 3:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, batch_norm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm1(self.conv1(x)).relu()
        return (self.norm2(self.conv2(inner)) + self.shortcut(x)).relu()


def module_of(architecture: Architecture) -> nn.Sequential:
    """The architecture as one would write it in PyTorch."""
    made: list[nn.Module] = []
    for layer, shape in zip(architecture.layers, architecture.input_shapes, strict=True):
        if isinstance(layer, Conv):
            made.append(
                nn.Conv2d(
                    layer.inputs, layer.outputs, layer.side, padding=layer.padding, bias=layer.bias
                )
            )
        elif isinstance(layer, Embedding):
            made.append(nn.Embedding(layer.symbols, layer.size))
        elif isinstance(layer, Lstm):
            made.append(LstmLayer(layer.inputs, layer.size))
        elif isinstance(layer, Residual):
            made.append(BasicBlock(layer))
        elif isinstance(layer, Norm):
            made.append(batch_norm(shape[0]))
        elif isinstance(layer, Linear):
            made.append(nn.Linear(layer.inputs, layer.outputs, bias=layer.bias))
        else:
            made.append(STATELESS[type(layer)]())
    return nn.Sequential(*made)


def plain_loop(
    task: LearningTask, model: nn.Module, start: dict[str, Tensor], jobs: Sequence[Job]
) -> list[dict[str, Tensor]]:
    """Client after client: load the global model, make an optimiser, train, keep the state dict."""
    images, labels = task.train
    trained = []
    for job in jobs:
        (phase,) = job.phases
        model.load_state_dict(start)
        optimiser = torch.optim.SGD(model.parameters(), lr=phase.lr)
        order = torch.from_numpy(samples(task, phase, job)[0]).to(images.device)
        total = 0.0
        for chosen in order.split(task.batch(job.device)):
            optimiser.zero_grad()
            loss = cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimiser.step()
            total += loss.item()
        trained.append({name: value.clone() for name, value in model.state_dict().items()})
    return trained


def flat(state: dict[str, Tensor]) -> Tensor:
    return torch.cat([value.flatten() for value in state.values()])


STATELESS: dict[type, Callable[[], nn.Module]] = {
    Relu: nn.ReLU,
    Flatten: nn.Flatten,
    MaxPool: lambda: nn.MaxPool2d(2),
    Last: LastStep,
    MeanPool: MeanOfChannels,
}
