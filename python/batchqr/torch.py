# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch: install() makes torch.linalg.qr, torch.geqrf, torch.linalg.householder_product, torch.ormqr, and
torch.linalg.svd, svdvals, eigh and eigvalsh ours, in programs that are not changed. It replaces PyTorch's kernels below
its dispatcher: derivatives, vmap and torch.compile are PyTorch's own and find our kernels where they look for PyTorch's.
lstsq() has a derivative of its own."""
from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from . import _routines, _spectral

_installed: list[Any] = []
_lock = threading.Lock()


def _qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        if mode == "r":
            return a.new_empty(0), _routines.qr(a, "r")
        return tuple(_routines.qr(a, mode))  # type: ignore[return-value,arg-type]


def _geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        return tuple(_routines.geqrf(a))  # type: ignore[return-value]


def _householder_product(a: Tensor, tau: Tensor) -> Tensor:
    with torch.no_grad():
        return _routines.householder_product(a, tau)  # type: ignore[no-any-return]


def _ormqr(a: Tensor, tau: Tensor, c: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    with torch.no_grad():
        return _routines.ormqr(a, tau, c, left, transpose)  # type: ignore[no-any-return]


def _svd(a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *,
         driver: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        if not compute_uv:
            return a.new_empty(0), _spectral.svdvals(a), a.new_empty(0)
        u, s, vh = _spectral.svd(a, full_matrices)
        return u, s, vh.resolve_conj()


def _eigh(a: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        lower = UPLO.upper() == "L"
        if not compute_v:
            return _spectral.eigvalsh(a, lower=lower), a.new_empty(0)
        return tuple(_spectral.eigh(a, lower=lower))  # type: ignore[return-value]


_KERNELS = {"linalg_qr": _qr, "geqrf": _geqrf, "linalg_householder_product": _householder_product, "ormqr": _ormqr,
            "_linalg_svd": _svd, "_linalg_eigh": _eigh}


def install(*, cpu: bool = False) -> None:
    """Makes QR, singular values and eigenvalues of CUDA tensors ours, for all threads; of CPU tensors, too, with cpu = True.
    out= of these functions stays PyTorch's."""
    with _lock:
        if _installed:
            return
        library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is replaced is what the caller asked for
            for key in ["CUDA"] + (["CPU"] if cpu else []):
                for name, kernel in _KERNELS.items():
                    library.impl(name, kernel, key)
        _installed.append(library)


def uninstall() -> None:
    """Gives PyTorch its kernels back."""
    with _lock:
        while _installed:
            _installed.pop()._destroy()


@contextlib.contextmanager
def use(*, cpu: bool = False) -> Iterator[None]:
    """install() for a block of statements; does nothing where it is installed already."""
    inside = bool(_installed)
    install(cpu=cpu)
    try:
        yield
    finally:
        if not inside:
            uninstall()


@torch.library.custom_op("batchqr::lstsq", mutates_args=())
def _lstsq(a: Tensor, b: Tensor, adjoint: bool) -> Tensor:
    x = _routines.lstsq(a.detach(), b.detach(), adjoint=adjoint).x
    return x.contiguous()  # type: ignore[no-any-return]


@_lstsq.register_fake
def _(a: Tensor, b: Tensor, adjoint: bool) -> Tensor:
    members = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*members, a.shape[-2 if adjoint else -1], b.shape[-1]))


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, bool], output: Tensor) -> None:
    a, b, ctx.adjoint = inputs
    ctx.save_for_backward(a, b, output)


def _backward(context: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
    """With M = op(A) and its pseudoinverse M+: the gradient of b is y = M+^H g, that of M is -y x^H + r z^H where M is
    tall, r = b - M x and z = M+ y, and -y x^H + u (g - M^H y)^H where M is wide, u = M+^H x."""
    a, b, x = context.saved_tensors
    adjoint = context.adjoint
    op = a.mH if adjoint else a
    y = _lstsq(a, g, not adjoint)
    of_op = -y @ x.mH
    if op.shape[-2] >= op.shape[-1]:
        of_op = of_op + (b - op @ x) @ _lstsq(a, y, adjoint).mH
    else:
        of_op = of_op + _lstsq(a, x, not adjoint) @ (g - op.mH @ y).mH
    of_a = of_op.mH if adjoint else of_op
    return of_a.sum_to_size(a.shape), y.sum_to_size(b.shape), None


_lstsq.register_autograd(_backward, setup_context=_save)


@_lstsq.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], a: Tensor, b: Tensor, adjoint: bool) -> tuple[Tensor, int]:
    rank = max(x.ndim - (dim is not None) for x, dim in zip((a, b), in_dims))

    def outermost(x: Tensor, dim: int | None) -> Tensor:
        """The mapped axis first, then as many as the other array has."""
        if dim is None:
            return x
        x = x.movedim(dim, 0)
        return x.reshape(x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:])

    return _lstsq(outermost(a, in_dims[0]), outermost(b, in_dims[1]), adjoint), 0


def lstsq(a: Tensor, b: Tensor, *, adjoint: bool = False) -> Tensor:
    """x of least squares, or of least norm where op(A) is wide, with derivatives of any order.

    a  (..., m, n), of full rank
    b  (..., m, k), or (..., n, k) with adjoint; the leading axes are broadcast

    Returns x (..., n, k), or (..., m, k)."""
    return _lstsq(a, b, adjoint)  # type: ignore[no-any-return]
