"""Chunks of a pass beside each other on an accelerator: they do not depend on one another.

The host queues the work of a chunk and goes on; only the accelerator waits. On a CPU there is nothing to queue.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

LANES = 2  # CUDA streams; each takes the memory of a chunk


class Lanes:
    """Streams in turn. What was queued before a chunk is done before it, and the chunk before what follows `join`."""

    def __init__(self, device: str) -> None:
        cuda = torch.device(device).type == "cuda"
        self._streams = [torch.cuda.Stream(device) for _ in range(LANES)] if cuda else []
        self.turn = 0  # the lane of the latest chunk: what is written in one belongs to it alone

    def next(self) -> AbstractContextManager:
        """The context in which the next chunk is queued."""
        if not self._streams:
            return nullcontext()
        self.turn = (self.turn + 1) % len(self._streams)
        stream = self._streams[self.turn]
        stream.wait_stream(torch.cuda.current_stream(stream.device))
        return torch.cuda.stream(stream)

    def join(self) -> None:
        """Whatever is queued from now on comes after all chunks."""
        for stream in self._streams:
            torch.cuda.current_stream(stream.device).wait_stream(stream)
