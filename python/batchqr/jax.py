# SPDX-License-Identifier: BSD-3-Clause
"""JAX's arrays in host memory. They are read where they lie; results are copied, since JAX owns its memory. Not for
functions that JAX traces: jit, vmap and grad."""
from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from . import _routines
from ._routines import GeqrfResult, LstsqResult


def read(x: Any) -> Any:
    if isinstance(x, jax.core.Tracer):
        raise TypeError("an array that JAX traces: call batchqr outside of jit, vmap and grad")
    if isinstance(x, jax.Array) and any(device.platform != "cpu" for device in x.devices()):
        raise TypeError("an array of JAX in device memory: only those in host memory are taken")
    return np.asarray(x)


def given_back(x: Any) -> Any:
    return jax.tree.map(jnp.array, x)


def qr(a: Any, mode: Literal["reduced", "complete", "r"] = "reduced", *, positive: bool = False) -> Any:
    """See batchqr.qr()."""
    return given_back(_routines.qr(read(a), mode, positive=positive))


def geqrf(a: Any, *, positive: bool = False) -> GeqrfResult:
    """See batchqr.geqrf()."""
    return GeqrfResult(*map(given_back, _routines.geqrf(read(a), positive=positive)))


def householder_product(a: Any, tau: Any) -> Any:
    """See batchqr.householder_product()."""
    return given_back(_routines.householder_product(read(a), read(tau)))


def ormqr(a: Any, tau: Any, c: Any, left: bool = True, transpose: bool = False) -> Any:
    """See batchqr.ormqr()."""
    return given_back(_routines.ormqr(read(a), read(tau), read(c), left, transpose))


def lstsq(a: Any, b: Any, *, adjoint: bool = False) -> LstsqResult:
    """See batchqr.lstsq()."""
    return LstsqResult(*map(given_back, _routines.lstsq(read(a), read(b), adjoint=adjoint)))
