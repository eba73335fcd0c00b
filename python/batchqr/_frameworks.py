# SPDX-License-Identifier: BSD-3-Clause
"""What the package needs to know of NumPy, CuPy and PyTorch: an array's address, strides, device and stream, and
their allocators. Only frameworks that the program has arrays of are imported."""
from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from ._arrays import Shape, strides_by_columns
from ._core import Backend, Type, host_address

Array = Any  # of the caller's framework
Allocate = Callable[[int], tuple[object, int]]  # bytes -> what owns the memory, and its address

_TYPES = {"float32": Type.S, "float64": Type.D, "complex64": Type.C, "complex128": Type.Z}
_NUMPY_TYPES = {np.dtype(name): letter for name, letter in _TYPES.items()}  # of native byte order
_NOTHING: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
_LIBRARY_TYPES = "float32, float64, complex64 and complex128"


class Framework:
    """Arrays of one framework. `like` is an array whose device, and where it matters type, another one shall have."""

    name: str

    def asarray(self, x: Any) -> Array:
        """x as an array whose elements can be read as they lie in memory, of a type that the library has."""
        raise NotImplementedError

    def is_array(self, x: Any) -> bool:
        """Whether x is an array of this framework, not what asarray() makes one of."""
        raise NotImplementedError

    def type(self, x: Array) -> Type:
        raise NotImplementedError

    def strides(self, x: Array) -> Shape:
        """In elements."""
        raise NotImplementedError

    def address(self, x: Array) -> int:
        raise NotImplementedError

    def key(self, x: Array) -> Hashable:
        """All of x but its address and elements."""
        raise NotImplementedError

    def is_writable(self, x: Array) -> bool:
        raise NotImplementedError

    def backend(self, x: Array) -> Backend:
        raise NotImplementedError

    def device(self, x: Array) -> int:
        """The CUDA device's number; -1 for host memory."""
        raise NotImplementedError

    def on_device(self, x: Array) -> contextlib.AbstractContextManager[Any]:
        """Makes x's device the current one."""
        raise NotImplementedError

    def stream(self, x: Array) -> int:
        """The framework's current stream on x's device."""
        raise NotImplementedError

    def allocator(self, x: Array) -> Allocate | None:
        """For workspace on x's device; None where the library shall allocate it."""
        raise NotImplementedError

    def empty(self, shape: Shape, like: Array) -> Array:
        raise NotImplementedError

    def zeros(self, shape: Shape, like: Array) -> Array:
        raise NotImplementedError

    def empty_real(self, shape: Shape, like: Array) -> Array:
        raise NotImplementedError

    def empty_int32(self, shape: Shape, like: Array) -> Array:
        raise NotImplementedError

    def addresses(self, values: list[int], like: Array) -> Array:
        """An array of addresses, where the library reads such arrays."""
        raise NotImplementedError

    def copy(self, target: Array, source: Array) -> None:
        raise NotImplementedError

    def broadcast_to(self, x: Array, shape: Shape) -> Array:
        raise NotImplementedError

    def transpose(self, x: Array) -> Array:
        """The last two axes exchanged; no copy."""
        raise NotImplementedError

    def first_rows(self, x: Array, rows: int) -> Array:
        """No copy."""
        return x if x.shape[-2] == rows else x[..., :rows, :]

    def triu(self, x: Array) -> Array:
        """A copy with zeros below the diagonals."""
        raise NotImplementedError

    def adjoint(self, x: Array) -> Array:
        """The conjugate transpose; no copy of real numbers."""
        raise NotImplementedError

    def inverted(self, s: Array, least: Array) -> Array:
        """1 / s, or 0 where s is not above `least`; NaN where s is."""
        raise NotImplementedError

    def rows_before(self, x: Array, end: Array) -> Array:
        """A copy of x (..., k, n) with zeros in rows from `end` (...) on."""
        raise NotImplementedError

    def norms_of_residuals(self, a: Array, x: Array, b: Array) -> Array:
        """The 2-norms of the columns of b - a x, which neither overflow nor underflow."""
        raise NotImplementedError

    def by_columns(self, x: Array) -> Array:
        """A copy whose members are stored by columns."""
        made = self.empty_matrices(tuple(x.shape), x)
        self.copy(made, x)
        return made

    def empty_matrices(self, shape: Shape, like: Array) -> Array:
        """(..., m, n), members stored by columns and one after the other."""
        return self.transpose(self.empty((*shape[:-2], shape[-1], shape[-2]), like))


@lru_cache(maxsize=4096)
def _in_elements(strides: Shape, size: int) -> Shape:
    if any(s % size for s in strides):
        return (-1,) * len(strides)  # a field of records, for instance: no strides that the library could use
    return tuple(s // size for s in strides)


class _NumPyLike(Framework):
    """What NumPy and CuPy have in common."""

    def __init__(self, xp: Any) -> None:
        self.name = xp.__name__
        self.xp = xp

    def is_array(self, x: Any) -> bool:
        return isinstance(x, self.xp.ndarray)

    def asarray(self, x: Any) -> Array:
        array = self.xp.asarray(x)
        if array.dtype in _NUMPY_TYPES:
            return array
        if array.dtype.kind in "iub":
            return array.astype(np.float64)
        native = array.dtype.newbyteorder("=")
        if native not in _NUMPY_TYPES:
            what = "array" if self.is_array(x) else f"{type(x).__name__}, to {self.name} an array"
            raise TypeError(f"{what} of type {array.dtype}: the library has {_LIBRARY_TYPES}")
        return array.astype(native)

    def zeros(self, shape: Shape, like: Array) -> Array:
        return self.xp.zeros(shape, like.dtype)

    def type(self, x: Array) -> Type:
        try:
            return _NUMPY_TYPES[x.dtype]
        except KeyError:
            raise TypeError(f"array of type {x.dtype}: the library has {_LIBRARY_TYPES}") from None

    def strides(self, x: Array) -> Shape:
        return _in_elements(x.strides, x.itemsize)

    def empty(self, shape: Shape, like: Array) -> Array:
        return self.xp.empty(shape, like.dtype)

    def empty_real(self, shape: Shape, like: Array) -> Array:
        return self.xp.empty(shape, np.float32 if like.dtype.char in "fF" else np.float64)

    def empty_int32(self, shape: Shape, like: Array) -> Array:
        return self.xp.empty(shape, np.int32)

    def addresses(self, values: list[int], like: Array) -> Array:
        return self.xp.asarray(values, dtype=np.uintp)

    def copy(self, target: Array, source: Array) -> None:
        target[...] = source

    def broadcast_to(self, x: Array, shape: Shape) -> Array:
        return x if x.shape == shape else self.xp.broadcast_to(x, shape)

    def transpose(self, x: Array) -> Array:
        return x.swapaxes(-1, -2)

    def triu(self, x: Array) -> Array:
        return self.xp.triu(x)

    def adjoint(self, x: Array) -> Array:
        return self.xp.conj(x).swapaxes(-1, -2) if x.dtype.kind == "c" else x.swapaxes(-1, -2)

    def inverted(self, s: Array, least: Array) -> Array:
        none = s <= least
        return self.xp.where(none, s.dtype.type(0), 1 / self.xp.where(none, s.dtype.type(1), s))

    def rows_before(self, x: Array, end: Array) -> Array:
        before = self.xp.arange(x.shape[-2]) < end[..., None]
        return self.xp.where(before[..., None], x, x.dtype.type(0))

    def norms_of_residuals(self, a: Array, x: Array, b: Array) -> Array:
        xp = self.xp
        if 0 in b.shape:
            return xp.zeros((*b.shape[:-2], b.shape[-1]), self.empty_real((), b).dtype)
        size = xp.abs(b - a @ x)
        largest = size.max(-2, keepdims=True)
        unit = xp.where(largest > 0, largest, largest.dtype.type(1))
        return unit[..., 0, :] * xp.sqrt(xp.square(size / unit).sum(-2))


def _host_array(x: Any) -> Any:
    """What NumPy cannot read by itself, but through DLPack."""
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__") and not hasattr(x, "__array_interface__"):
        return np.from_dlpack(x)
    return x


class NumPy(_NumPyLike):
    def __init__(self) -> None:
        super().__init__(np)

    def asarray(self, x: Any) -> Array:
        x = super().asarray(_host_array(x))
        return x if x.flags.aligned else x.copy()

    def address(self, x: Array) -> int:
        return host_address(x)

    def key(self, x: Array) -> Hashable:
        return x.shape, x.strides, x.dtype.char

    def is_writable(self, x: Array) -> bool:
        return bool(x.flags.writeable and x.flags.aligned)

    def backend(self, x: Array) -> Backend:
        return Backend.CPU

    def device(self, x: Array) -> int:
        return -1

    def on_device(self, x: Array) -> contextlib.AbstractContextManager[Any]:
        return _NOTHING

    def stream(self, x: Array) -> int:
        return 0

    def allocator(self, x: Array) -> Allocate | None:
        return None


class CuPy(_NumPyLike):
    """An array of another framework with `__cuda_array_interface__` becomes one of these, without a copy."""

    def __init__(self) -> None:
        super().__init__(importlib.import_module("cupy"))

    def address(self, x: Array) -> int:
        return int(x.data.ptr)

    def key(self, x: Array) -> Hashable:
        return x.shape, x.strides, x.dtype.char, x.data.device_id

    def is_writable(self, x: Array) -> bool:
        return True

    def backend(self, x: Array) -> Backend:
        return Backend.CUDA

    def device(self, x: Array) -> int:
        return int(x.device.id)

    def on_device(self, x: Array) -> contextlib.AbstractContextManager[Any]:
        return x.device  # type: ignore[no-any-return]

    def stream(self, x: Array) -> int:
        return int(self.xp.cuda.get_current_stream(x.device.id).ptr)

    def allocator(self, x: Array) -> Allocate | None:
        def allocate(size: int) -> tuple[object, int]:
            with x.device:
                memory = self.xp.cuda.alloc(size)
            return memory, memory.ptr

        return allocate


class Torch(Framework):
    name = "torch"

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        t = self.torch
        self._types = {getattr(t, name): letter for name, letter in _TYPES.items()}
        self._real = {t.complex64: t.float32, t.complex128: t.float64}

    def is_array(self, x: Any) -> bool:
        return isinstance(x, self.torch.Tensor)

    def asarray(self, x: Any) -> Array:
        if not isinstance(x, self.torch.Tensor):
            return self.torch.from_dlpack(x)
        if x.requires_grad and self.torch.is_grad_enabled():
            raise RuntimeError("a tensor that requires grad: differentiate through torch.linalg.qr under "
                               "batchqr.torch.install() or batchqr.torch.lstsq, or detach the tensor")
        if x.is_conj() or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        return x

    def type(self, x: Array) -> Type:
        try:
            return self._types[x.dtype]
        except KeyError:
            raise TypeError(f"tensor of type {x.dtype}: the library has {_LIBRARY_TYPES}") from None

    def strides(self, x: Array) -> Shape:
        return x.stride()  # type: ignore[no-any-return]

    def address(self, x: Array) -> int:
        return x.data_ptr()  # type: ignore[no-any-return]

    def key(self, x: Array) -> Hashable:
        return x.shape, x.stride(), x.dtype, x.device

    def is_writable(self, x: Array) -> bool:
        return True

    def backend(self, x: Array) -> Backend:
        if x.is_cuda:
            return Backend.CUDA
        if x.device.type == "cpu":
            return Backend.CPU
        raise TypeError(f"tensor on device {x.device}: the library works on CUDA devices and on the CPU")

    def device(self, x: Array) -> int:
        return x.get_device()  # type: ignore[no-any-return]

    def on_device(self, x: Array) -> contextlib.AbstractContextManager[Any]:
        if not x.is_cuda or x.get_device() == self.torch._C._cuda_getDevice():
            return _NOTHING
        return self.torch.cuda.device(x.device)  # type: ignore[no-any-return]

    def stream(self, x: Array) -> int:
        return self.torch._C._cuda_getCurrentRawStream(x.get_device()) if x.is_cuda else 0

    def allocator(self, x: Array) -> Allocate | None:
        if not x.is_cuda:
            return None

        def allocate(size: int) -> tuple[object, int]:
            memory = self.torch.empty(size, dtype=self.torch.uint8, device=x.device)
            return memory, memory.data_ptr()

        return allocate

    def empty(self, shape: Shape, like: Array) -> Array:
        return like.new_empty(shape)

    def zeros(self, shape: Shape, like: Array) -> Array:
        return like.new_zeros(shape)

    def empty_real(self, shape: Shape, like: Array) -> Array:
        return like.new_empty(shape, dtype=self._real.get(like.dtype, like.dtype))

    def empty_int32(self, shape: Shape, like: Array) -> Array:
        return like.new_empty(shape, dtype=self.torch.int32)

    def addresses(self, values: list[int], like: Array) -> Array:
        return self.torch.tensor(values, dtype=self.torch.int64, device=like.device)

    def copy(self, target: Array, source: Array) -> None:
        target.copy_(source)

    def empty_matrices(self, shape: Shape, like: Array) -> Array:
        return like.new_empty_strided(shape, strides_by_columns(shape))

    def first_rows(self, x: Array, rows: int) -> Array:
        return x if x.shape[-2] == rows else x.narrow(-2, 0, rows)

    def broadcast_to(self, x: Array, shape: Shape) -> Array:
        return x.expand(shape)

    def transpose(self, x: Array) -> Array:
        return x.mT

    def triu(self, x: Array) -> Array:
        return self.torch.triu(x)

    def adjoint(self, x: Array) -> Array:
        return x.mH

    def inverted(self, s: Array, least: Array) -> Array:
        return self.torch.where(s <= least, 0, 1 / s)

    def rows_before(self, x: Array, end: Array) -> Array:
        before = self.torch.arange(x.shape[-2], device=x.device) < end[..., None]
        return self.torch.where(before[..., None], x, 0)

    def norms_of_residuals(self, a: Array, x: Array, b: Array) -> Array:
        size = (b - a @ x).abs()
        if not size.numel():
            return size.sum(-2)
        largest = size.amax(-2, keepdim=True)
        unit = self.torch.where(largest > 0, largest, 1)
        return unit[..., 0, :] * (size / unit).square().sum(-2).sqrt()


class Jax(Framework):
    """A mark: batchqr.jax has functions of its own for these arrays, which cannot be written to."""

    name = "jax"


_MAKERS: dict[str, type[Framework]] = {"numpy": NumPy, "torch": Torch, "cupy": CuPy, "jax": Jax, "jaxlib": Jax}
_made: dict[type[Framework], Framework] = {}
_of_types: dict[type, Framework] = {}


def _framework(maker: type[Framework]) -> Framework:
    if maker not in _made:
        _made[maker] = maker()
    return _made[maker]


def _installed(*makers: type[Framework]) -> Framework:
    for maker in makers:
        try:
            return _framework(maker)
        except ImportError:
            continue
    raise TypeError("an array in device memory of a framework that the package does not know: "
                    "with CuPy or PyTorch installed it could be taken")


def _find_framework(x: Any) -> Framework:
    for base in type(x).__mro__:
        maker = _MAKERS.get(base.__module__.split(".")[0])
        if maker:
            return _framework(maker)
    if hasattr(x, "__cuda_array_interface__"):
        return _installed(CuPy, Torch)
    if hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] in (2, 13):  # kDLCUDA, kDLCUDAManaged
        return _installed(Torch, CuPy)
    return _framework(NumPy)


def framework_of(x: Any) -> Framework:
    """The framework of an array; NumPy for what is none (lists, buffers, DLPack in host memory)."""
    found = _of_types.get(type(x))
    if found is None:
        found = _of_types[type(x)] = _find_framework(x)
    return found
