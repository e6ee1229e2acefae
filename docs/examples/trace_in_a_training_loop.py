"""TRACE as a layer of somebody else's network: a cue of the first step decides what is right at the last.

python docs/examples/trace_in_a_training_loop.py
"""

import torch
from torch import nn

from trace_memory_ros import MemoryDims, MemoryInput, batch_signature, build_memory


class Recall(nn.Module):
    """Features (B, T, F) and the path (B, T, d) that the robot took to logits (B, T, classes)."""

    def __init__(self, features, path, classes, width=32):
        super().__init__()
        self.memory = build_memory("trace", MemoryDims(features, path + path**2, width, slots=4))
        self.head = nn.Linear(width, classes)

    def forward(self, features, path):
        xi = batch_signature(path, depth=2)
        delta = xi.diff(dim=1, prepend=torch.zeros_like(xi[:, :1]))  # every step writes
        xs = MemoryInput(features, xi, delta, anchor=features[:, :1].expand_as(features))
        write = features.new_ones(features.shape[:2], dtype=torch.bool)
        readout, _, _ = self.memory(xs, self.memory.initial_state(len(features)), write)
        return self.head(readout.vector)


def draw(episodes, steps=12):
    """Random episodes whose cue is seen at step 0 alone."""
    cue = torch.randint(2, (episodes,))
    features = 0.1 * torch.randn(episodes, steps, 4)
    features[:, 0, 0] += 2.0 * cue - 1.0
    return features, torch.randn(episodes, steps, 3).cumsum(dim=1) / steps, cue


def main():
    torch.manual_seed(0)
    model = Recall(features=4, path=3, classes=2)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(150):
        features, path, cue = draw(64)
        loss = nn.functional.cross_entropy(model(features, path)[:, -1], cue)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        features, path, cue = draw(500)
        right = (model(features, path)[:, -1].argmax(dim=-1) == cue).sum().item()
    print(f"{right} of 500 cues remembered over 12 steps")


if __name__ == "__main__":
    main()
