# SPDX-License-Identifier: BSD-3-Clause
"""Handles: the caller's, and those that the functions share among them."""
from __future__ import annotations

import os
import threading
from typing import Literal

from . import _checks, _core
from ._core import Backend, Compute
from ._frameworks import Array, Framework

_BACKENDS = {"auto": Backend.AUTO, "cpu": Backend.CPU, "cuda": Backend.CUDA}
_COMPUTES = {"auto": Compute.AUTO, "native": Compute.NATIVE, "emulated": Compute.EMULATED, "half": Compute.HALF}


class Handle:
    """What a program chooses once: who computes, how, and R's signs. The functions take one as `handle`.

    backend      "auto" (CUDA where there is a device), "cpu" or "cuda" (the current device)
    positive     R's diagonal is not negative
    threads      of the CPU backend; 0: as many as OpenMP gives
    tuning_file  a tuning table instead of the built-in ones
    compute      "auto", "native", "emulated" or "half": which arithmetic may be used

    Threads may share a handle: their calls take turns."""

    def __init__(self, backend: Literal["auto", "cpu", "cuda"] = "auto", *, positive: bool = False, threads: int = 0,
                 tuning_file: str | os.PathLike[str] | None = None,
                 compute: Literal["auto", "native", "emulated", "half"] = "auto") -> None:
        self.positive = _checks.flag("positive", positive)
        _checks.choice("backend", backend, *_BACKENDS)
        _checks.choice("compute", compute, *_COMPUTES)
        table = None if tuning_file is None else os.fspath(tuning_file)
        self._core = _core.Handle(_BACKENDS[backend], self.positive, _checks.integer("threads", threads), table,
                                  _COMPUTES[compute])

    @property
    def backend(self) -> str:
        """ "cpu" or "cuda"."""
        return "cpu" if self._core.backend == Backend.CPU else "cuda"

    def __repr__(self) -> str:
        return f"<batchqr.Handle: {self._core.describe().strip()}>"


_shared: dict[tuple[Backend, int, bool], Handle] = {}
_lock = threading.Lock()


def handle_for(framework: Framework, x: Array, positive: bool, given: Handle | None) -> Handle:
    """The caller's handle, or the one that calls without one share on x's device."""
    if given is not None:
        if not isinstance(given, Handle):
            raise TypeError(f"handle = {given!r}: a batchqr.Handle is needed")
        if given._core.backend != framework.backend(x):
            raise ValueError(f"the handle works on {given.backend}, where the array is not")
        if positive and not given.positive:
            raise ValueError("positive = True: the handle was made without")
        return given
    key = (framework.backend(x), framework.device(x), _checks.flag("positive", positive))
    handle = _shared.get(key)
    if handle is None:
        with _lock, framework.on_device(x):
            if key not in _shared:
                _shared[key] = Handle("cpu" if key[0] == Backend.CPU else "cuda", positive=positive)
            handle = _shared[key]
    return handle
