# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch: install() makes torch.linalg.qr, torch.geqrf, torch.linalg.householder_product, torch.ormqr,
torch.linalg.svd, svdvals, eigh and eigvalsh, and torch.svd_lowrank ours, in programs that are not changed. It replaces
PyTorch's kernels below its dispatcher: derivatives, vmap and torch.compile are PyTorch's own and find our kernels where
they look for PyTorch's. lstsq() has a derivative of its own."""
from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from . import _checks, _routines, _spectral

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


_DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
_their_svd_lowrank = torch.svd_lowrank


def _svd_lowrank(devices: tuple[str, ...]) -> Any:
    """torch.svd_lowrank is no kernel but a function of products, QR and SVD. Where nothing looks into it, it is one call of
    the library; what stays PyTorch's, derivatives for instance, finds our QR and SVD. PyTorch's generator chooses the
    sketch."""
    def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Any:
        looked_into = torch.compiler.is_compiling() or type(A) is not Tensor or \
            torch._C._functorch.is_functorch_wrapped_tensor(A) or (A.requires_grad and torch.is_grad_enabled())
        if looked_into or M is not None or A.layout is not torch.strided or A.device.type not in devices or \
                A.dtype not in _DTYPES or A.ndim < 2:
            return _their_svd_lowrank(A, q, niter, M)
        seed = int(torch.randint(2**62, ()))
        with torch.no_grad():
            return tuple(_spectral.svd_lowrank(A, 6 if q is None else q, 2 if niter is None else niter, seed=seed))

    return svd_lowrank


def install(*, cpu: bool = False) -> None:
    """Makes QR, singular values and eigenvalues of CUDA tensors ours, for all threads; of CPU tensors, too, with cpu = True.
    out= of these functions stays PyTorch's."""
    with _lock:
        if _installed:
            return
        torch.svd_lowrank = _svd_lowrank(("cuda", "cpu") if cpu else ("cuda",))
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
        torch.svd_lowrank = _their_svd_lowrank


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


def _mapped(op: Any) -> Any:
    """How a least squares operator is called once for all members of a mapped axis."""
    def rule(info: Any, in_dims: tuple[int | None, ...], a: Tensor, b: Tensor, option: Any) -> tuple[Tensor, int]:
        rank = max(x.ndim - (dim is not None) for x, dim in zip((a, b), in_dims))

        def outermost(x: Tensor, dim: int | None) -> Tensor:
            """The mapped axis first, then as many as the other array has."""
            if dim is None:
                return x
            x = x.movedim(dim, 0)
            return x.reshape(x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:])

        return op(outermost(a, in_dims[0]), outermost(b, in_dims[1]), option), 0

    return rule


_lstsq.register_vmap(_mapped(_lstsq))


# --- of any rank: derivatives at constant rank

@torch.library.custom_op("batchqr::pinv", mutates_args=())
def _pinv(a: Tensor, rcond: float) -> Tensor:
    """By QR with column pivoting, as _lstsq_of_any_rank()."""
    return _spectral.pinv(a.detach(), rtol=rcond, method="qr").contiguous()  # type: ignore[no-any-return]


@_pinv.register_fake
def _(a: Tensor, rcond: float) -> Tensor:
    return a.new_empty((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _save_pinv(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _backward_of_pinv(context: Any, g: Tensor) -> tuple[Tensor, None]:
    """G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10, 1973."""
    a, p = context.saved_tensors
    ph, gh = p.mH, g.mH
    left, right = gh - a @ (p @ gh), gh - (gh @ p) @ a
    return (left @ p) @ ph + ph @ (p @ right) - ph @ g @ ph, None


_pinv.register_autograd(_backward_of_pinv, setup_context=_save_pinv)


@_pinv.register_vmap
def _(info: Any, in_dims: tuple[int, None], a: Tensor, rcond: float) -> tuple[Tensor, int]:
    return _pinv(a.movedim(in_dims[0], 0), rcond), 0


@torch.library.custom_op("batchqr::lstsq_of_any_rank", mutates_args=())
def _lstsq_of_any_rank(a: Tensor, b: Tensor, rcond: float) -> Tensor:
    return _routines.lstsq(a.detach(), b.detach(), rcond=rcond).x.contiguous()  # type: ignore[no-any-return]


@_lstsq_of_any_rank.register_fake
def _(a: Tensor, b: Tensor, rcond: float) -> Tensor:
    return a.new_empty((*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-1], b.shape[-1]))


def _save_of_any_rank(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
    a, b, ctx.rcond = inputs
    ctx.save_for_backward(a, b, output)


def _backward_of_any_rank(context: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
    """With the pseudoinverse P, r = b - A x and y = P^H g, which is the gradient of b: that of A is
    -y x^H + r (P y)^H + P^H x (g - A^H y)^H."""
    a, b, x = context.saved_tensors
    p = _pinv(a, context.rcond)
    y = p.mH @ g
    of_a = (b - a @ x) @ (p @ y).mH + (p.mH @ x) @ (g - a.mH @ y).mH - y @ x.mH
    return of_a.sum_to_size(a.shape), y.sum_to_size(b.shape), None


_lstsq_of_any_rank.register_autograd(_backward_of_any_rank, setup_context=_save_of_any_rank)
_lstsq_of_any_rank.register_vmap(_mapped(_lstsq_of_any_rank))


def lstsq(a: Tensor, b: Tensor, *, adjoint: bool = False, rcond: float | None = None) -> Tensor:
    """x of least squares, or of least norm where op(A) is wide or has no full rank, with derivatives of any order.

    a      (..., m, n)
    b      (..., m, k), or (..., n, k) with adjoint; the leading axes are broadcast
    rcond  None: A is of full rank. Else of any rank, as batchqr.lstsq() says; 0 stands for max(m, n) times the rounding of
           A's type. Derivatives are then those at constant rank.

    Returns x (..., n, k), or (..., m, k)."""
    if rcond is None:
        return _lstsq(a, b, adjoint)  # type: ignore[no-any-return]
    return _lstsq_of_any_rank(a.mH if adjoint else a, b, _checks.real("rcond", rcond))  # type: ignore[no-any-return]
