# SPDX-License-Identifier: BSD-3-Clause
"""Frameworks, types and shapes that the tests run over; those that are not installed are skipped by name."""
from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

import numpy as np
import pytest

# JAX would take three quarters of a GPU's memory at once, which PyTorch's, CuPy's and the library's own tests need.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(0, 3), (3, 0), (1, 1), (5, 1), (1, 5), (4, 4), (9, 4), (4, 9), (0, 4, 3), (7, 8, 3), (2, 3, 6, 6), (2, 1, 3, 20, 7),
          (1, 40, 33)]


class Framework:
    """How a test makes arrays of a framework and looks at results."""

    def __init__(self, name: str, device: str) -> None:
        self.name, self.device = name, device
        self.module = importlib.import_module(name)

    def array(self, x: Any) -> Any:
        """With x's strides where the framework has such."""
        if self.name == "numpy":
            return x
        if self.name == "cupy":
            base = self.module.empty(x.shape, x.dtype, order="F" if x.flags.f_contiguous else "C")
            base[...] = self.module.asarray(x)
            return base
        if any(s < 0 for s in x.strides):
            x = x.copy()
        return self.module.from_numpy(np.array(x, order="K")).to(self.device)

    def numpy(self, x: Any) -> Any:
        if self.name == "torch":
            return x.detach().cpu().resolve_conj().numpy()
        return self.module.asnumpy(x) if self.name == "cupy" else x

    def is_array(self, x: Any) -> bool:
        kind = self.module.Tensor if self.name == "torch" else self.module.ndarray
        return isinstance(x, kind) and (self.name != "torch" or x.device.type == self.device.split(":")[0])


def _frameworks() -> list[Any]:
    def missing(why: str, name: str) -> Any:
        return pytest.param(None, id=name, marks=pytest.mark.skip(reason=why))

    found: list[Any] = [pytest.param(("numpy", "cpu"), id="numpy")]
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        found.append(pytest.param(("torch", "cpu"), id="torch"))
        found.append(pytest.param(("torch", "cuda"), id="torch-cuda") if torch.cuda.is_available()
                     else missing("no CUDA device", "torch-cuda"))
    else:
        found.append(missing("PyTorch is not installed", "torch"))
    if importlib.util.find_spec("cupy"):
        found.append(pytest.param(("cupy", "cuda"), id="cupy"))
    else:
        found.append(missing("CuPy is not installed", "cupy"))
    return found


@pytest.fixture(params=_frameworks())
def framework(request: Any) -> Framework:
    return Framework(*request.param)


def _jax_platforms() -> list[Any]:
    if not importlib.util.find_spec("jax"):
        return [pytest.param("cpu", marks=pytest.mark.skip(reason="JAX is not installed"))]
    try:
        importlib.import_module("jax").devices("gpu")
    except RuntimeError:
        return ["cpu", pytest.param("gpu", marks=pytest.mark.skip(reason="JAX has no GPU"))]
    return ["cpu", "gpu"]


@pytest.fixture(params=_jax_platforms())
def jax_device(request: Any) -> Any:
    """Each of JAX's platforms in turn, and types of 64 bits."""
    jax = importlib.import_module("jax")
    if importlib.import_module("batchqr._xla")._jax is None:
        pytest.skip("built where JAX's headers were not")
    device = jax.devices(request.param)[0]
    with jax.enable_x64(True), jax.default_device(device):
        yield device


@pytest.fixture(params=DTYPES)
def dtype(request: Any) -> str:
    return str(request.param)


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def tolerance(a: Any) -> float:
    return float(30 * max(1, *a.shape[-2:]) * np.finfo(a.dtype).eps)


def check_factors(a: Any, q: Any, r: Any) -> None:
    """Within the bounds of LAPACK's tests, of NumPy's arrays."""
    assert q.dtype == r.dtype == a.dtype
    if 0 in a.shape:
        return
    residual = np.abs(q @ r - a).sum(-2).max(-1)
    assert (residual <= tolerance(a) * np.abs(a).sum(-2).max(-1)).all()
    check_orthonormal(q)
    assert (np.tril(r, -1) == 0).all()


def check_orthonormal(q: Any) -> None:
    if 0 not in q.shape:
        assert np.abs(adjoint(q) @ q - np.eye(q.shape[-1])).max() <= tolerance(q)
