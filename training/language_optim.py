"""Muon for the layers' matrices, Adam for embeddings and norms: all its state in tensors, so that a CUDA
graph can hold a step."""

from __future__ import annotations

import math

import torch

MUON, ADAM = 0.01, 2e-3  # peak learning rates
MOMENTUM, DECAY = 0.95, 0.1
BETAS, EPSILON, CLIP = (0.9, 0.95), 1e-10, 1.0


def orthogonalized(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Matrices (n, rows, columns) with all singular values brought near 1, by Newton-Schulz iterations in
    bfloat16.

    The quintic and its coefficients are Muon's (Jordan et al., 2024): quick rather than exact, 0.7 to 1.2.
    """
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315) @ x
    return x.mT if tall else x


class MuonAdam:
    """Updates a dict of parameters in place: those of three dimensions (layers, rows, columns) by Muon, the
    rest by Adam."""

    def __init__(self, parameters: dict[str, torch.Tensor], scale: float = 1.0):
        self.parameters, self.scale = parameters, scale
        self.moments = {name: torch.zeros_like(p, requires_grad=False) for name, p in parameters.items()}
        self.squares = {n: torch.zeros_like(p, requires_grad=False) for n, p in parameters.items()
                        if p.ndim < 3}
        self.rate = torch.zeros((), device=next(iter(parameters.values())).device)  # times the peaks
        self.count = torch.zeros_like(self.rate)

    def state(self) -> dict[str, torch.Tensor]:
        """All tensors that a checkpoint needs."""
        return {"count": self.count, **{f"moment.{n}": t for n, t in self.moments.items()},
                **{f"square.{n}": t for n, t in self.squares.items()}}

    @torch.no_grad()
    def update(self, gradients: dict[str, torch.Tensor]) -> None:
        total = torch.stack([g.float().square().sum() for g in gradients.values()]).sum().sqrt()
        clip = (CLIP / (total + 1e-6)).clamp(max=1.0)
        self.count += 1
        for name, parameter in self.parameters.items():
            gradient, moment = gradients[name].float() * clip, self.moments[name]
            if parameter.ndim == 3:
                rate = self.rate * (MUON * self.scale)
                moment.lerp_(gradient, 1 - MOMENTUM)
                direction = orthogonalized(gradient.lerp(moment, MOMENTUM)).float()
                parameter.mul_(1 - rate * DECAY)
                parameter.sub_(direction * (rate * max(1.0, parameter.shape[1] / parameter.shape[2]) ** 0.5))
            else:
                square = self.squares[name]
                moment.lerp_(gradient, 1 - BETAS[0])
                square.lerp_(gradient.square(), 1 - BETAS[1])
                first, second = (t / (1 - (self.count * math.log(beta)).exp())
                                 for t, beta in zip((moment, square), BETAS, strict=True))
                parameter.sub_(first / (second.sqrt() + EPSILON) * (self.rate * (ADAM * self.scale)))
