# SPDX-License-Identifier: BSD-3-Clause
"""QR factorization, singular values and eigenvalues of batches of dense matrices, on NVIDIA GPUs and on the CPU.

The functions take arrays of NumPy, CuPy, PyTorch and JAX, and what gives itself through DLPack or
`__cuda_array_interface__`, and return arrays of the same framework. The last two axes are a matrix's, all others
count members of the batch. Strides may be any. On a GPU the work is enqueued on the framework's current stream, with
workspace from its allocator.

What is wrong with a call is an exception with the library's text (ValueError, MemoryError, batchqr.Error); what is
wrong with the numbers of a member is told by `info` and by NaN in its results, as <batchqr/batchqr.h> says.
"""
from ._config import show_config
from ._core import Error, version
from ._handles import Handle
from ._plan import Plan
from ._routines import (
    GeqrfResult, LstsqIterationsResult, LstsqRankResult, LstsqResult, QRResult, geqrf, householder_product, lstsq,
    ormqr, qr, qr_many)
from ._spectral import (
    EighResult, PivotedQRResult, SVDLowrankResult, SVDResult, eigh, eigvalsh, matrix_rank, pinv, qr_pivoted, svd,
    svd_lowrank, svdvals)

__version__ = version()
__all__ = ["EighResult", "Error", "GeqrfResult", "Handle", "LstsqIterationsResult", "LstsqRankResult", "LstsqResult",
           "PivotedQRResult", "Plan", "QRResult", "SVDLowrankResult", "SVDResult", "eigh", "eigvalsh", "geqrf",
           "householder_product", "lstsq", "matrix_rank", "ormqr", "pinv", "qr", "qr_many", "qr_pivoted",
           "show_config", "svd", "svd_lowrank", "svdvals"]
