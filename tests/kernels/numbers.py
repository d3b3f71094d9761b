"""Random numbers that are the same every time."""

from __future__ import annotations

import torch


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
