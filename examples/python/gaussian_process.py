# SPDX-License-Identifier: BSD-3-Clause
"""Many Gaussian processes at once with GPyTorch, trained twice: as they are, and with torch.linalg.qr and its kin
replaced by batchqr's. The training does not know of it.

GPyTorch solves by conjugate gradients, with a preconditioner that takes a QR factorization in every step; PyTorch
factors the matrices of a batch one by one. GPyTorch's own way around that, QR on the CPU, is switched off.

    python3 gaussian_process.py [--processes 256] [--points 512] [--steps 20]"""
from __future__ import annotations

import argparse
import sys
import time

try:
    import gpytorch
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed; this example needs GPyTorch: python3 -m pip install gpytorch")
import linear_operator
import torch

import batchqr.torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        shape = torch.Size([x.shape[0]])
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(batch_shape=shape), batch_shape=shape)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def problem(processes: int, points: int, device: str):
    """Noisy sine waves of different frequencies."""
    torch.manual_seed(0)
    x = torch.rand(processes, points, 1, device=device, dtype=torch.float64).sort(1).values
    frequency = torch.linspace(1, 8, processes, device=device)[:, None]
    y = torch.sin(6.28 * frequency * x[..., 0]) + 0.1 * torch.randn_like(x[..., 0])
    return x, y


def train(x, y, steps: int) -> tuple[float, float]:
    """Seconds, and the loss at the end."""
    torch.manual_seed(1)
    likelihood = gpytorch.likelihoods.GaussianLikelihood(batch_shape=torch.Size([x.shape[0]])).to(x)
    model = Model(x, y, likelihood).to(x)
    model.train(), likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    settings = gpytorch.settings
    loss = torch.zeros(())
    with settings.max_cholesky_size(0), settings.max_preconditioner_size(8), settings.min_preconditioning_size(1), \
            linear_operator.settings.stable_qr_cpu_threshold(-1):
        for step in range(steps + 1):
            if step == 1:  # the first one loads kernels
                if x.is_cuda:
                    torch.cuda.synchronize()
                begin = time.perf_counter()
            optimizer.zero_grad()
            loss = -marginal(model(x), y).mean()
            loss.backward()
            optimizer.step()
    end = float(loss.detach())  # waits
    return time.perf_counter() - begin, end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=256)
    parser.add_argument("--points", type=int, default=512)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"{args.processes} Gaussian processes of {args.points} points, {args.steps} steps, on {device}")
    x, y = problem(args.processes, args.points, device)
    before = train(x, y, args.steps)
    print(f"PyTorch's QR   {before[0]:8.3f} s   loss {before[1]:.6f}")
    with batchqr.torch.use(cpu=device == "cpu"):
        after = train(x, y, args.steps)
    print(f"batchqr's QR   {after[0]:8.3f} s   loss {after[1]:.6f}   {before[0] / after[0]:.1f} times as fast")


if __name__ == "__main__":
    main()
