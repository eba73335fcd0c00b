# SPDX-License-Identifier: BSD-3-Clause
"""The library's routines as calls that XLA makes: what jax.py and _jax_spectral.py are built on. All leading axes count
members; nothing here has a derivative."""
from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

try:
    from . import _jax
except ImportError:  # built where JAX's headers were not
    _jax = None  # type: ignore[assignment]
else:
    for _name, (_host, _cuda) in _jax.handlers().items():
        jax.ffi.register_ffi_target(_name, _host, platform="cpu")
        jax.ffi.register_ffi_target(_name, _cuda, platform="CUDA")


def check_available() -> None:
    if _jax is None:
        raise RuntimeError("this build of batchqr is without JAX's headers: install it where jaxlib is installed")


# A call of the library. Its parameters: the function's name, its results as (shape, type), their layouts and its operands',
# from the axis that varies slowest on, (operand, result) that are one array, and attributes as (name, value).
call_p = Primitive("batchqr")
call_p.multiple_results = True


@call_p.def_impl
def _run(*operands: Any, **parameters: Any) -> Any:
    return _compiled(**parameters)(*operands)


@lru_cache(maxsize=1024)
def _compiled(**parameters: Any) -> Any:
    return jax.jit(partial(call_p.bind, **parameters))


@call_p.def_abstract_eval
def _abstract(*_: Any, results: Any, **__: Any) -> Any:
    return [ShapedArray(shape, np.dtype(dtype)) for shape, dtype in results]


def _mapped(operands: Any, axes: Any, *, results: Any, layouts_in: Any, layouts_out: Any, **parameters: Any) -> Any:
    """One call, of one more batch axis."""
    size, = {x.shape[axis] for x, axis in zip(operands, axes) if axis is not None}
    operands = [jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
                for x, axis in zip(operands, axes)]

    def more(layouts: Any) -> Any:
        return tuple((0, *(i + 1 for i in layout)) for layout in layouts)

    made = call_p.bind(*operands, results=tuple(((size, *shape), dtype) for shape, dtype in results),
                       layouts_in=more(layouts_in), layouts_out=more(layouts_out), **parameters)
    return made, [0] * len(made)


batching.primitive_batchers[call_p] = _mapped


def _workspace(name: str, operands: Any, results: Any, attributes: dict[str, Any]) -> int:
    """Bytes, enough for each kind of the GPUs that are here; 0 where there are none: the call then asks XLA for some."""
    try:
        devices = {device.device_kind: device.local_hardware_id for device in jax.local_devices(backend="cuda")}
    except RuntimeError:
        return 0
    given, made = [(str(x.dtype), x.shape) for x in operands], [(dtype, shape) for shape, dtype in results]
    return max(_jax.workspace_size(name, device, given, made, attributes) for device in devices.values())


def _lowered(platform: str, ctx: Any, *operands: Any, name: str, results: Any, layouts_in: Any, layouts_out: Any,
             aliases: Any, attributes: Any) -> Any:
    """XLA has workspace for programs on GPUs as one more result, which it may keep for a graph."""
    if platform == "cuda":
        size = _workspace(name, ctx.avals_in, results, {key: value.item() for key, value in attributes})
        ctx = ctx.replace(avals_out=[*ctx.avals_out, ShapedArray((size,), np.dtype(np.uint8))])
        layouts_out = (*layouts_out, (0,))
    rule = jax.ffi.ffi_lowering(name, operand_layouts=[x[::-1] for x in layouts_in],
                                result_layouts=[x[::-1] for x in layouts_out], operand_output_aliases=dict(aliases))
    return rule(ctx, *operands, **dict(attributes))[:len(results)]


for _platform in ("cpu", "cuda"):
    try:
        mlir.register_lowering(call_p, partial(_lowered, _platform), platform=_platform)
    except NotImplementedError:  # JAX is installed without it
        pass


def _call(name: str, results: Any, *operands: Any, aliases: dict[int, int], by_columns: tuple[int, ...] = (),
          read_by_columns: tuple[int, ...] = (), **attributes: Any) -> Any:
    """results: shapes and types. aliases: operands that become results; these matrices are stored by columns, and the
    results `by_columns` and the operands `read_by_columns`; others by rows."""
    check_available()

    def layouts(arrays: Any, turned: Any) -> Any:
        axes = [tuple(range(len(x.shape))) for x in arrays]
        return tuple((*x[:-2], x[-1], x[-2]) if i in turned else x for i, x in enumerate(axes))

    made = call_p.bind(*operands, name=name, results=tuple((tuple(x.shape), str(x.dtype)) for x in results),
                       layouts_in=layouts(operands, (*aliases.keys(), *read_by_columns)),
                       layouts_out=layouts(results, (*aliases.values(), *by_columns)), aliases=tuple(aliases.items()),
                       attributes=tuple(attributes.items()))
    return tuple(made)


def _like(x: Any, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, x.dtype)


def _ints(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.int32)


def real(x: Any) -> Any:
    """The type of norms."""
    return jnp.finfo(x.dtype).dtype


def _reals(x: Any, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, real(x))


def adjoint(x: Any) -> Any:
    return x.swapaxes(-1, -2).conj()


def eye(x: Any, m: int, k: int) -> Any:
    """For every member of x."""
    return jnp.broadcast_to(jnp.eye(m, k, dtype=x.dtype), (*x.shape[:-2], m, k))


# --- QR

def qr(a: Any, positive: bool) -> Any:
    *members, m, n = a.shape
    k = min(m, n)
    if 0 in a.shape:
        return eye(a, m, k), jnp.zeros((*members, k, n), a.dtype)
    return _call("batchqr_qr", (_like(a, *members, m, k), _like(a, *members, k, n)), a, aliases={},
                 by_columns=(0, 1), positive=np.bool_(positive))


def geqrf(a: Any, positive: bool) -> Any:
    *members, m, n = a.shape
    if 0 in a.shape:
        return a, jnp.zeros((*members, min(m, n)), a.dtype)
    return _call("batchqr_geqrf", (_like(a, *a.shape), _like(a, *members, min(m, n))), a, aliases={0: 0},
                 positive=np.bool_(positive))


def orgqr(a: Any, tau: Any) -> Any:
    if 0 in a.shape:
        return a
    if tau.shape[-1] == 0:
        return eye(a, *a.shape[-2:])
    return _call("batchqr_orgqr", (_like(a, *a.shape),), a, tau, aliases={0: 0})[0]


def ormqr(a: Any, tau: Any, c: Any, left: bool, transpose: bool) -> Any:
    if 0 in c.shape or tau.shape[-1] == 0:
        return c
    return _call("batchqr_ormqr", (_like(c, *c.shape),), a, tau, c, aliases={2: 0}, read_by_columns=(0,), left=np.bool_(left),
                 transpose=np.bool_(transpose))[0]


def all_of_q(factored: Any, tau: Any) -> Any:
    """Q (..., m, m) of geqrf()'s results, m >= n."""
    *_, m, n = factored.shape
    wide = jnp.pad(factored, [(0, 0)] * (factored.ndim - 1) + [(0, m - n)])
    return orgqr(wide, tau) if n else eye(factored, m, m)


def geqp3(a: Any, kmax: int, atol: float, rtol: float) -> Any:
    """R and V, tau, the columns' order and the rank."""
    *members, m, n = a.shape
    if 0 in a.shape:
        order = jnp.broadcast_to(jnp.arange(n, dtype=np.int32), (*members, n))
        return a, jnp.zeros((*members, min(m, n)), a.dtype), order, jnp.zeros(members, np.int32)
    return _call("batchqr_geqp3", (_like(a, *a.shape), _like(a, *members, min(m, n)), _ints(*members, n), _ints(*members)),
                 a, aliases={0: 0}, kmax=np.int64(kmax), atol=np.float64(atol), rtol=np.float64(rtol))


# --- least squares

def _tall(a: Any, b: Any) -> Any:
    """B with as many rows as A has rows or columns."""
    return jnp.pad(b, [(0, 0)] * (b.ndim - 2) + [(0, max(a.shape[-2:]) - b.shape[-2]), (0, 0)])


def gels(a: Any, b: Any, adjoint: bool) -> Any:
    """X, the residuals' norms and info."""
    *members, m, n = a.shape
    unknowns = m if adjoint else n
    count = b.shape[-1]
    if 0 in a.shape or count == 0:
        return jnp.zeros((*members, unknowns, count), a.dtype), jnp.linalg.norm(b, axis=-2), jnp.zeros(members, np.int32)
    c = _tall(a, b)
    c, norms, info = _call("batchqr_gels", (_like(c, *c.shape), _reals(a, *members, count), _ints(*members)), a, c,
                           aliases={1: 0}, adjoint=np.bool_(adjoint))
    return c[..., :unknowns, :], norms, info


def gelsy(a: Any, b: Any, rcond: float) -> Any:
    """X, the rank and info."""
    *members, m, n = a.shape
    count = b.shape[-1]
    if 0 in a.shape or count == 0:
        if 0 in a.shape:
            rank = jnp.zeros(members, np.int32)
        else:
            rank = geqp3(a, 0, 0, rcond or max(m, n) * float(jnp.finfo(a.dtype).eps))[3]
        return jnp.zeros((*members, n, count), a.dtype), rank, jnp.zeros(members, np.int32)
    c = _tall(a, b)
    _, c, rank, info = _call("batchqr_gelsy", (_like(a, *a.shape), _like(c, *c.shape), _ints(*members), _ints(*members)),
                             a, c, aliases={0: 0, 1: 1}, rcond=np.float64(rcond))
    return c[..., :n, :], rank, info


def pinv(a: Any, rcond: float) -> Any:
    """By QR with column pivoting."""
    *members, m, n = a.shape
    if 0 in a.shape:
        return jnp.zeros((*members, n, m), a.dtype)
    return _call("batchqr_pinv", (_like(a, *a.shape), _like(a, *members, n, m)), a, aliases={0: 0}, by_columns=(1,),
                 rcond=np.float64(rcond))[1]


# --- singular values and eigenvalues

def _unless(info: Any, x: Any) -> Any:
    """x with NaN in members whose info is not 0."""
    return jnp.where(info.reshape(*info.shape, *(1,) * (x.ndim - info.ndim)) == 0, x, jnp.asarray(np.nan, x.dtype))


def svdvals(a: Any, atol: float = 0, rtol: float = 0) -> Any:
    """The singular values, and how many of them are above max(atol, rtol * the largest one)."""
    *members, m, n = a.shape
    k = min(m, n)
    if 0 in a.shape:
        return jnp.zeros((*members, k), real(a)), jnp.zeros(members, np.int32)
    _, s, rank, info = _call("batchqr_gesvd_values",
                             (_like(a, *a.shape), _reals(a, *members, k), _ints(*members), _ints(*members)), a,
                             aliases={0: 0}, atol=np.float64(atol), rtol=np.float64(rtol))
    return _unless(info, s), rank


def svd(a: Any) -> Any:
    """U, S and V^H, thin."""
    *members, m, n = a.shape
    k = min(m, n)
    if 0 in a.shape:
        return eye(a, m, k), jnp.zeros((*members, k), real(a)), eye(a, k, n)
    _, s, u, v, info = _call(
        "batchqr_gesvd",
        (_like(a, *a.shape), _reals(a, *members, k), _like(a, *members, m, k), _like(a, *members, n, k), _ints(*members)),
        a, aliases={0: 0}, by_columns=(2, 3))
    return _unless(info, u), _unless(info, s), adjoint(_unless(info, v))


def completed(q: Any) -> Any:
    """With orthonormal columns behind those of q, as many as it has rows."""
    if q.shape[-2] == q.shape[-1]:
        return q
    return jnp.concatenate([q, all_of_q(*geqrf(q, False))[..., q.shape[-1]:]], -1)


def full_svd(a: Any) -> Any:
    """U and V^H square."""
    u, s, vh = svd(a)
    return completed(u), s, adjoint(completed(adjoint(vh)))


def gesvdr(a: Any, k: int, oversampling: int, power_steps: int, seed: int) -> Any:
    """U, S and V, k of each."""
    *members, m, n = a.shape
    if 0 in a.shape or k == 0:
        return eye(a, m, k), jnp.zeros((*members, k), real(a)), eye(a, n, k)
    s, u, v = _call("batchqr_gesvdr", (_reals(a, *members, k), _like(a, *members, m, k), _like(a, *members, n, k)), a,
                    aliases={}, by_columns=(1, 2), read_by_columns=(0,), oversampling=np.int64(oversampling),
                    power_steps=np.int64(power_steps), seed=np.int64(seed - 2**64 if seed >= 2**63 else seed))
    return u, s, v


def syevd(a: Any, lower: bool, vectors: bool) -> Any:
    """Eigenvalues, and eigenvectors where they are wanted, else None."""
    *members, n, _ = a.shape
    if 0 in a.shape:
        return jnp.zeros((*members, n), real(a)), a if vectors else None
    v, w, info = _call("batchqr_syevd", (_like(a, *a.shape), _reals(a, *members, n), _ints(*members)), a, aliases={0: 0},
                       lower=np.bool_(lower), vectors=np.bool_(vectors))
    return _unless(info, w), _unless(info, v) if vectors else None
