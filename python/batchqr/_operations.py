# SPDX-License-Identifier: BSD-3-Clause
"""From arrays to the library's operations: a problem is a batch, as the library describes it, and its operands."""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Matrix, Shape
from ._core import Batch, Op, Side, Trans, Type
from ._frameworks import Array, Framework
from ._handles import Handle

# Of operands, as _core has it.
_PLACES = {name: i for i, name in enumerate(("a", "tau", "c", "r", "info", "norms", "s", "u", "v", "jpvt", "rank",
                                             "iterations", "relres"))}


@dataclass(slots=True)
class Problem:
    """One call of the library, but for its handle."""

    framework: Framework
    like: Array  # on whose device the work is
    op: Op
    batch: Batch
    operands: dict[str, Array | None] = field(default_factory=dict)

    def addresses(self) -> list[int]:
        address, found = self.framework.address, [0] * len(_PLACES)
        for name, x in self.operands.items():
            if x is not None:
                found[_PLACES[name]] = address(x)
        return found

    def run(self, handle: Handle) -> None:
        execute(self.framework, self.like, handle, self.op, self.batch, self.addresses())


def execute(framework: Framework, like: Array, handle: Handle, op: Op, batch: Batch, addresses: list[int]) -> None:
    """On like's device."""
    with framework.on_device(like):
        handle._core.run(op, batch, addresses, framework.stream(like), framework.allocator(like))


_NO_MORE = [0] * (len(_PLACES) - 6)


class Prepared:
    """What is the same in all calls with arrays of the same shapes, strides, type and device: such a call spends its time
    on its results, and on what it has the device do."""

    def __init__(self, problem: Problem, handle: Handle) -> None:
        self.op, self.batch, self.handle = problem.op, problem.batch, handle
        self.shapes = {name: tuple(x.shape) for name, x in problem.operands.items() if x is not None}

    def run(self, framework: Framework, a: Array, c: Array | None, r: Array | None = None, info: Array | None = None,
            norms: Array | None = None) -> None:
        at = framework.address
        addresses = [at(a), 0, 0 if c is None else at(c), 0 if r is None else at(r), 0 if info is None else at(info),
                     0 if norms is None else at(norms), *_NO_MORE]
        execute(framework, a, self.handle, self.op, self.batch, addresses)


class PreparedCalls:
    """By the framework, the arrays' keys and arguments."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Prepared] = {}
        self.get = self._known.get

    def keep(self, key: Hashable, problem: Problem, handle: Handle) -> None:
        if len(self._known) >= 1024:
            self._known.clear()
        self._known[key] = Prepared(problem, handle)


@lru_cache(maxsize=1024)
def _batch(type: Type, members: int, m: int, n: int, k: int, side: Side, trans: Trans, a: Matrix, c: Matrix, r: Matrix,
           tau: int, norms: int, keep_a: bool, iterations: int = 0, gram_schmidt: int = 0) -> Batch:
    return Batch(type, members, m, n, k, side, trans, a, c, r, tau, norms, iterations, keep_a, gram_schmidt)


_NONE: Matrix = (0, 0, 0)
Range = tuple[int, int, float, float]  # il, iu, vl and vu of a batch
ALL: Range = (0, 0, 0, 0)


def matrices(x: Array, name: str) -> Shape:
    """The shape of an array that must hold matrices."""
    shape = tuple(x.shape)
    if len(shape) < 2:
        raise ValueError(f"{name} of shape {shape}: the last two axes are a matrix's, so there must be two at least")
    if max(shape[-2:]) >= 2**31:
        raise ValueError(f"{name} of shape {shape}: a matrix has fewer than 2**31 rows and columns")
    return shape


def check_type(framework: Framework, x: Array, like: Array, name: str) -> None:
    if framework.type(x) != framework.type(like):
        raise TypeError(f"{name} is of type {x.dtype}, the matrices of type {like.dtype}")
    if framework.device(x) != framework.device(like):
        raise ValueError(f"{name} is on another device than the matrices")


def check_array(framework: Framework, x: Any, name: str) -> None:
    if not framework.is_array(x):
        raise TypeError(f"{name} is a {type(x).__name__}: an array of {framework.name} is needed")


def check_output(framework: Framework, x: Array, like: Array, shape: Shape, name: str) -> None:
    check_array(framework, x, name)
    check_type(framework, x, like, name)
    if tuple(x.shape) != shape:
        raise ValueError(f"{name} of shape {tuple(x.shape)}: {shape} is needed")
    if not framework.is_writable(x):
        raise ValueError(f"{name} cannot be written to")


def check_info(framework: Framework, info: Any, members: Shape, like: Array) -> Array | None:
    if info is None:
        return None
    check_array(framework, info, "info")
    if framework.device(info) != framework.device(like):
        raise ValueError("info is on another device than the matrices")
    if str(info.dtype).removeprefix("torch.") != "int32" or tuple(info.shape) != members:
        raise ValueError(f"info of type {info.dtype} and shape {tuple(info.shape)}: int32 and {members} are needed")
    if _arrays.vector((*members, 1), (*framework.strides(info), 1)) not in (1, None) or not framework.is_writable(info):
        raise ValueError("info must be contiguous and writable")
    return info


# --- storage: all copies that transpose are made here

def stored_by_columns(framework: Framework, x: Array, overwrite: bool) -> Array:
    """x itself where it may be overwritten and is stored as the library writes it, else a copy."""
    if overwrite and is_stored_by_columns(framework, x):
        return x
    return framework.by_columns(x)


def is_stored_by_columns(framework: Framework, x: Array) -> bool:
    """And may be written to."""
    return framework.is_writable(x) and _arrays.columns(tuple(x.shape), framework.strides(x)) is not None


def is_readable(framework: Framework, x: Array) -> bool:
    return _arrays.any_strides(tuple(x.shape), framework.strides(x)) is not None


def host_allocator(size: int) -> tuple[object, int]:
    """Memory aligned as the library wants workspace to be."""
    memory = np.empty(size + 255, np.uint8)
    return memory, (memory.ctypes.data + 255) & ~255


def readable_by_columns(framework: Framework, x: Array) -> Array:
    """x itself where it is stored by columns, else a copy; the library reads it only."""
    return x if _arrays.columns(tuple(x.shape), framework.strides(x)) else framework.by_columns(x)


def _readable(framework: Framework, x: Array) -> tuple[Array, Matrix]:
    """x itself where the library can read it as it lies, else a copy by columns."""
    shape = tuple(x.shape)
    storage = _arrays.any_strides(shape, framework.strides(x))
    if storage is None:
        x = framework.by_columns(x)
        storage = _columns(framework, x)
    return x, storage


def _columns(framework: Framework, x: Array) -> Matrix:
    storage = _arrays.columns(tuple(x.shape), framework.strides(x))
    assert storage is not None
    return storage


def _vector(framework: Framework, x: Array) -> tuple[Array, int]:
    """x and its members' stride; a copy where the elements are not adjacent."""
    stride = _arrays.vector(tuple(x.shape), framework.strides(x))
    if stride is None:
        copy = framework.empty(tuple(x.shape), x)
        framework.copy(copy, x)
        return copy, int(x.shape[-1])
    return x, stride


def _memory(framework: Framework, x: Array) -> tuple[int, int]:
    """Where the elements of x begin and end."""
    first, last = _arrays.extent(tuple(x.shape), framework.strides(x))
    address = framework.address(x)
    return address + first * x.dtype.itemsize, address + last * x.dtype.itemsize


def overlap(framework: Framework, x: Array, y: Array) -> bool:
    """Whether x and y have, or may have, elements in common."""
    (x_begin, x_end), (y_begin, y_end) = _memory(framework, x), _memory(framework, y)
    return x_begin < y_end and y_begin < x_end


def writable(framework: Framework, out: Array | None, shape: Shape, like: Array, name: str) -> Array:
    """What QR writes to: out where that can be, else a new array by columns."""
    if out is not None:
        check_output(framework, out, like, shape, name)
        strides = framework.strides(out)
        if out is like:
            fits = _arrays.columns(shape, strides) is not None
        else:
            fits = _arrays.written(shape, strides) is not None and not overlap(framework, out, like)
        if fits:
            return out
    return framework.empty_matrices(shape, like)


# --- problems

def qr(framework: Framework, a: Array, q: Array | None, r: Array, info: Array | None, keep_a: bool,
       gram_schmidt: int = 0) -> Problem:
    """R, and Q unless that is None. keep_a: a is not written to. q may be a."""
    shape = tuple(a.shape)
    *members, m, n = shape
    original = a
    a, a_storage = _readable(framework, a)
    q_storage = _NONE
    if q is not None:
        q_storage = _arrays.written(tuple(q.shape), framework.strides(q)) or _NONE
    in_place = q is original
    r_storage = _arrays.written(tuple(r.shape), framework.strides(r)) or _NONE
    batch = _batch(framework.type(a), _arrays.count(tuple(members)), m, n, 0, Side.LEFT, Trans.NO_TRANS,
                   _columns(framework, a) if in_place else a_storage, q_storage, r_storage, 0, 0,
                   keep_a and not in_place, gram_schmidt=gram_schmidt)
    op = Op.GEQR_R if q is None else Op.QR
    return Problem(framework, original, op, batch, {"a": a, "c": q, "r": r, "info": info})


def geqrf(framework: Framework, a: Array, tau: Array, info: Array | None) -> Problem:
    """In a, which is stored by columns."""
    *members, m, n = tuple(a.shape)
    tau, tau_stride = _vector(framework, tau)
    batch = _batch(framework.type(a), _arrays.count(tuple(members)), m, n, 0, Side.LEFT, Trans.NO_TRANS,
                   _columns(framework, a), _NONE, _NONE, tau_stride, 0, False)
    return Problem(framework, a, Op.GEQRF, batch, {"a": a, "tau": tau, "info": info})


def _unless_empty(tau: Array) -> Array | None:
    """The library wants no address where there are no reflectors."""
    return tau if tau.shape[-1] else None


def orgqr(framework: Framework, a: Array, tau: Array, info: Array | None) -> Problem:
    """In a, which is stored by columns."""
    *members, m, n = tuple(a.shape)
    tau, tau_stride = _vector(framework, tau)
    batch = _batch(framework.type(a), _arrays.count(tuple(members)), m, n, int(tau.shape[-1]), Side.LEFT,
                   Trans.NO_TRANS, _columns(framework, a), _NONE, _NONE, tau_stride, 0, False)
    return Problem(framework, a, Op.ORGQR, batch, {"a": a, "tau": _unless_empty(tau), "info": info})


def ormqr(framework: Framework, a: Array, tau: Array, c: Array, left: bool, transpose: bool,
          info: Array | None) -> Problem:
    """In c, which is stored by columns; so is a."""
    *members, m, n = tuple(c.shape)
    tau, tau_stride = _vector(framework, tau)
    batch = _batch(framework.type(c), _arrays.count(tuple(members)), m, n, int(tau.shape[-1]),
                   Side.LEFT if left else Side.RIGHT, Trans.CONJ_TRANS if transpose else Trans.NO_TRANS,
                   _columns(framework, a), _columns(framework, c), _NONE, tau_stride, 0, False)
    return Problem(framework, c, Op.ORMQR, batch,
                   {"a": a if tau.shape[-1] else None, "tau": _unless_empty(tau), "c": c, "info": info})


def gels(framework: Framework, a: Array, c: Array, transpose: bool, norms: Array | None, info: Array | None,
         keep_a: bool, iterations: Array | None = None, relres: Array | None = None) -> Problem:
    """B in c's first rows; c, stored by columns, has as many rows as a has rows or columns."""
    *members, m, n = tuple(a.shape)
    original = a
    a, a_storage = _readable(framework, a)
    right_sides = int(c.shape[-1])
    batch = _batch(framework.type(a), _arrays.count(tuple(members)), m, n, right_sides, Side.LEFT,
                   Trans.CONJ_TRANS if transpose else Trans.NO_TRANS, a_storage, _columns(framework, c), _NONE, 0,
                   right_sides, keep_a, 0 if iterations is None else right_sides)
    return Problem(framework, original, Op.GELS, batch, {"a": a, "c": c, "norms": norms, "info": info,
                                                         "iterations": iterations, "relres": relres})


def qr_of_sizes(framework: Framework, like: Array, a: list[Array], q: list[Array], r: list[Array],
                info: Array | None) -> tuple[Problem, Any]:
    """Matrices of different sizes, all stored by columns. Also what must live until the work is enqueued."""
    def lds(arrays: list[Array]) -> list[int]:
        return [_columns(framework, x)[0] for x in arrays]

    batch = Batch.of_sizes(framework.type(like), [int(x.shape[0]) for x in a], [int(x.shape[1]) for x in a], lds(a),
                           lds(q), lds(r))
    tables = {name: framework.addresses([framework.address(x) for x in arrays], like)
              for name, arrays in (("a", a), ("c", q), ("r", r))}
    return Problem(framework, like, Op.QR, batch, {**tables, "info": info}), (a, tables)


@lru_cache(maxsize=1024)
def _spectral_batch(type: Type, members: int, m: int, n: int, k: int, a: Matrix, c: Matrix, u: Matrix, v: Matrix,
                    tau: int, s: int, jpvt: int, lower: bool, kmax: int, abstol: float, reltol: float,
                    oversampling: int, power_steps: int, seed: int, part: Range) -> Batch:
    return Batch.spectral(type, members, m, n, k, a, c, u, v, tau, s, jpvt, lower, kmax, abstol, reltol, oversampling,
                          power_steps, seed, *part)


def _spectral(op: Op, framework: Framework, a: Array, k: int = 0, *, c: Array | None = None, s: Array | None = None,
              u: Array | None = None, v: Array | None = None, tau: Array | None = None, jpvt: Array | None = None,
              rank: Array | None = None, info: Array | None = None, lower: bool = False, kmax: int = 0,
              abstol: float = 0, reltol: float = 0, oversampling: int = 0, power_steps: int = 0,
              seed: int = 0, part: Range = ALL) -> Problem:
    """All matrices are stored by columns; vectors are contiguous."""
    *members, m, n = tuple(a.shape)

    def matrix(x: Array | None) -> Matrix:
        return _NONE if x is None else _columns(framework, x)

    def vector(x: Array | None) -> int:
        return 0 if x is None else int(x.shape[-1])

    batch = _spectral_batch(framework.type(a), _arrays.count(tuple(members)), m, n, k, matrix(a), matrix(c), matrix(u),
                            matrix(v), vector(tau), vector(s), vector(jpvt), lower, kmax, abstol, reltol, oversampling,
                            power_steps, seed, part)
    operands = {"a": a, "c": c, "u": u, "v": v, "rank": rank, "info": info}
    for name, x in (("tau", tau), ("s", s), ("jpvt", jpvt)):
        operands[name] = None if x is None else _unless_empty(x)
    return Problem(framework, a, op, batch, operands)


def gelsy(framework: Framework, a: Array, c: Array, rank: Array, info: Array | None, rcond: float) -> Problem:
    """B in c's first rows; c has as many rows as a has rows or columns. a is work space."""
    return _spectral(Op.GELSY, framework, a, int(c.shape[-1]), c=c, rank=rank, info=info, reltol=rcond)


def pinv(framework: Framework, a: Array, c: Array, info: Array | None, rcond: float) -> Problem:
    """a is work space."""
    return _spectral(Op.PINV, framework, a, c=c, info=info, reltol=rcond)


def geqp3(framework: Framework, a: Array, tau: Array, jpvt: Array, rank: Array, info: Array | None, kmax: int,
          abstol: float, reltol: float) -> Problem:
    """In a. Negative tolerances are none."""
    return _spectral(Op.GEQP3, framework, a, tau=tau, jpvt=jpvt, rank=rank, info=info, kmax=kmax, abstol=abstol,
                     reltol=reltol)


def gesvd(framework: Framework, a: Array, s: Array, u: Array | None, v: Array | None, rank: Array | None,
          info: Array | None, abstol: float, reltol: float) -> Problem:
    """a is work space."""
    return _spectral(Op.GESVD, framework, a, s=s, u=u, v=v, rank=rank, info=info, abstol=abstol, reltol=reltol)


def gesvdr(framework: Framework, a: Array, s: Array, u: Array, v: Array, info: Array | None, oversampling: int,
           power_steps: int, seed: int) -> Problem:
    """a is only read."""
    return _spectral(Op.GESVDR, framework, a, int(s.shape[-1]), s=s, u=u, v=v, info=info, oversampling=oversampling,
                     power_steps=power_steps, seed=seed)


def syevd(framework: Framework, a: Array, w: Array, v: Array | None, info: Array | None, lower: bool,
          part: Range = ALL) -> Problem:
    """a is work space, and may be v."""
    return _spectral(Op.SYEVD, framework, a, s=w, v=v, info=info, lower=lower, part=part)
