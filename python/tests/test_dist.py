# SPDX-License-Identifier: BSD-3-Clause
"""batchqr.dist: ranks that are threads, with a communicator like mpi4py's, and processes of torch.distributed."""
from __future__ import annotations

import importlib.util
import os
import tempfile
import threading
from typing import Any

import numpy as np
import pytest

from batchqr import dist

SPREADS = [(8, 8, 8), (20, 1, 3), (0, 2, 2), (5,), (1, 1, 1)]


class Threads:
    """What the ranks have in common."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier, self.parts = size, threading.Barrier(size), [None] * size


class Rank:
    def __init__(self, threads: Threads, rank: int) -> None:
        self.threads, self.rank, self.size = threads, rank, threads.size

    def allgather(self, x: Any) -> list[Any]:
        self.threads.parts[self.rank] = x
        self.threads.barrier.wait(60)
        parts = list(self.threads.parts)
        self.threads.barrier.wait(60)
        return parts


def matrix(rows: int, dtype: str = "float64") -> Any:
    random = np.random.default_rng(7)
    return (random.standard_normal((2, rows, 4)) + 1j * random.standard_normal((2, rows, 4))).astype(dtype)


def judge(a: Any, results: list[Any]) -> None:
    q = np.concatenate([np.asarray(result.Q) for result in results], axis=-2)
    r = np.asarray(results[0].R)
    assert np.abs(q @ r - a).max() < 1e-12
    assert np.abs(np.swapaxes(q.conj(), -1, -2) @ q - np.eye(q.shape[-1])).max() < 1e-13
    assert all(np.array_equal(r, np.asarray(result.R)) for result in results)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("spread", SPREADS)
def test_threads(spread: tuple[int, ...], dtype: str) -> None:
    a = matrix(sum(spread), dtype)
    parts = np.split(a, np.cumsum(spread)[:-1], axis=-2)
    threads, results = Threads(len(spread)), [None] * len(spread)
    alone: list[Any] = [None] * len(spread)

    def run(rank: int) -> None:
        results[rank] = dist.tsqr(parts[rank], Rank(threads, rank))
        alone[rank] = dist.tsqr(parts[rank], Rank(threads, rank), "r")

    workers = [threading.Thread(target=run, args=(rank,)) for rank in range(len(spread))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    judge(a, results)
    for result in alone:
        assert result.Q is None
        np.testing.assert_allclose(np.abs(result.R), np.abs(results[0].R), atol=1e-12)


def _process(rank: int, spread: tuple[int, ...], folder: str) -> None:
    import torch

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the machine's name may have no address
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=len(spread))
    a = torch.from_numpy(np.split(matrix(sum(spread), "float64"), np.cumsum(spread)[:-1], axis=-2)[rank].copy())
    result = dist.tsqr(a)
    np.savez(os.path.join(folder, f"{rank}.npz"), q=result.Q.numpy(), r=result.R.numpy())
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_torch_distributed() -> None:
    import torch.multiprocessing

    spread = (6, 1)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_process, (spread, folder), nprocs=len(spread))
        results = []
        for rank in range(len(spread)):
            with np.load(os.path.join(folder, f"{rank}.npz")) as file:
                results.append(dist.TsqrResult(file["q"], file["r"]))
    judge(matrix(sum(spread)), results)


def test_share() -> None:
    assert [len(range(20)[dist.share(20, rank, 3)]) for rank in range(3)] == [7, 7, 6]
    assert [i for rank in range(4) for i in range(2)[dist.share(2, rank, 4)]] == [0, 1]
    with pytest.raises(ValueError):
        dist.share(3, 2, 2)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError):
        dist.tsqr(matrix(3))
    with pytest.raises(ValueError):
        dist.tsqr(matrix(3), Rank(Threads(1), 0), "complete")
