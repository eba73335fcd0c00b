# SPDX-License-Identifier: BSD-3-Clause
"""Matrices whose rows, and batches whose members, are spread over the ranks of torch.distributed or of mpi4py. Every rank
calls; each has its own rows, rank 0 the first ones."""
from __future__ import annotations

from typing import Any, NamedTuple

from . import _routines
from ._frameworks import framework_of


class TsqrResult(NamedTuple):
    """This rank's rows of Q (..., m, k), or None, and R (..., k, n), the same on all ranks."""

    Q: Any
    R: Any


class _Torch:
    """A process group of torch.distributed; None: the default one."""

    def __init__(self, group: Any) -> None:
        import torch.distributed as dist

        self.dist, self.group = dist, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def gather(self, x: Any) -> list[Any]:
        """What all ranks have, whose axis -2 may differ."""
        import torch

        heights = [torch.zeros(1, dtype=torch.int64, device=x.device) for _ in range(self.size)]
        self.dist.all_gather(heights, torch.tensor([x.shape[-2]], device=x.device), group=self.group)
        rows = [int(height) for height in heights]
        padded = x.new_zeros(*x.shape[:-2], max(rows), x.shape[-1])
        padded[..., : x.shape[-2], :] = x
        parts = [torch.empty_like(padded) for _ in rows]
        self.dist.all_gather(parts, padded, group=self.group)
        return [part[..., :height, :] for part, height in zip(parts, rows)]

    def stack(self, parts: list[Any]) -> Any:
        import torch

        return torch.cat(parts, dim=-2)


class _Mpi:
    """A communicator of mpi4py, or what has its rank, size and allgather()."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank, self.size = group.rank, group.size

    def gather(self, x: Any) -> list[Any]:
        return list(self.group.allgather(x))

    def stack(self, parts: list[Any]) -> Any:
        import numpy as np

        return np.concatenate(parts, axis=-2)


def _ranks(a: Any, group: Any) -> Any:
    if hasattr(group, "allgather"):
        return _Mpi(group)
    if framework_of(a).name == "torch":
        return _Torch(group)
    raise TypeError("group: a communicator of mpi4py, or, with tensors of PyTorch, a group of torch.distributed")


def tsqr(a: Any, group: Any = None, mode: str = "reduced") -> TsqrResult:
    """QR of the matrices whose rows all ranks have together: each rank factors its own, one all-gather brings every R
    to all, and all factor these alike. mode "r": R alone. Collective."""
    ranks = _ranks(a, group)
    if mode not in ("reduced", "r"):
        raise ValueError(f"mode = {mode!r} is neither 'reduced' nor 'r'")
    if mode == "r":
        return TsqrResult(None, _routines.qr(ranks.stack(ranks.gather(_routines.qr(a, "r"))), "r"))
    q, r = _routines.qr(a)
    parts = ranks.gather(r)
    common, r = _routines.qr(ranks.stack(parts))
    first = sum(part.shape[-2] for part in parts[: ranks.rank])
    return TsqrResult(q @ common[..., first : first + q.shape[-1], :], r)


def share(count: int, rank: int, size: int) -> slice:
    """The members of a batch of one size that are this rank's: a contiguous part, as batchqr_split() deals them."""
    if not 0 <= rank < size or count < 0:
        raise ValueError(f"share({count}, {rank}, {size})")
    each, over = divmod(count, size)
    first = rank * each + min(rank, over)
    return slice(first, first + each + (rank < over))
