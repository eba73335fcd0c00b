# SPDX-License-Identifier: BSD-3-Clause
"""Handles: the caller's, and those that the functions share among them."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from . import _core
from ._core import Backend, Compute
from ._frameworks import Array, Framework

_BACKENDS = {"auto": Backend.AUTO, "cpu": Backend.CPU, "cuda": Backend.CUDA}
_COMPUTES = {"auto": Compute.AUTO, "native": Compute.NATIVE, "emulated": Compute.EMULATED, "half": Compute.HALF}


def _choice[T](choices: dict[str, T], name: str, value: str) -> T: ...
