#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""uses_torch.py --time: a program in PyTorch that knows nothing of batchqr, for compare.py. Exits with 2 where there is no
PyTorch or no GPU. Prints call, type, rows, columns, members and milliseconds: the median of 9 calls after 3."""
import statistics
import sys

try:
    import torch
except ImportError:
    torch = None
if torch is None or not torch.cuda.is_available():
    sys.exit(2)


def milliseconds(call, *arguments):
    times = []
    for _ in range(12):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call(*arguments)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[3:])


def right(found, wanted):
    tolerance = 100 * wanted.shape[-2] * torch.finfo(wanted.dtype).eps
    return bool(((found - wanted).abs().amax() <= tolerance * wanted.abs().amax()).item())


def from_reflectors(factors, tau):
    return torch.linalg.householder_product(factors, tau) @ factors.triu()[..., : factors.shape[-1], :]


def by_gesvdj(a):
    return torch.linalg.svd(a, driver="gesvdj")


# What is called, and the product of its results that the matrix is.
CALLS = {
    "torch.geqrf": (torch.geqrf, from_reflectors),
    "torch.linalg.qr": (torch.linalg.qr, torch.matmul),
    "torch.linalg.eigh": (torch.linalg.eigh, lambda values, z: z * values[..., None, :] @ z.mT),
    "torch.linalg.svd": (by_gesvdj, lambda u, s, vh: u * s[..., None, :] @ vh),
}
CASES = [("torch.geqrf", 8, 8, 100000), ("torch.geqrf", 32, 32, 10000), ("torch.geqrf", 64, 64, 1000),
         ("torch.geqrf", 256, 32, 1000), ("torch.linalg.qr", 32, 32, 100), ("torch.linalg.eigh", 8, 8, 1000),
         ("torch.linalg.eigh", 32, 32, 1000), ("torch.linalg.svd", 8, 8, 1000), ("torch.linalg.svd", 32, 32, 1000)]

torch.manual_seed(1)
for name, rows, columns, count in CASES:
    call, product = CALLS[name]
    for letter, dtype in ("s", torch.float32), ("d", torch.float64):
        a = torch.randn(count, rows, columns, dtype=dtype, device="cuda")
        if name == "torch.linalg.eigh":
            a = a + a.mT
        some = [result[:16] for result in call(a)]
        if not right(product(*some), a[:16]):
            sys.exit(f"{name}: wrong results")
        print(f"{name},{letter},{rows},{columns},{count},{milliseconds(call, a):.4f}", flush=True)
