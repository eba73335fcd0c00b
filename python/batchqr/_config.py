# SPDX-License-Identifier: BSD-3-Clause
"""What this installation can do."""
from __future__ import annotations

import importlib.util
from typing import Literal

from . import _core
from ._handles import Handle


def _backend(name: Literal["cpu", "cuda"]) -> str:
    try:
        return Handle(name)._core.describe().strip()
    except (_core.Error, ValueError) as error:
        return f"no: {error}"


def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, str] | None:
    """Prints the library's version, its backends and the frameworks that are installed; with mode = "dicts" returns
    them, as numpy.show_config() does."""
    config = {"version": _core.version(), "cpu": _backend("cpu"), "cuda": _backend("cuda")}
    frameworks = [name for name in ("numpy", "torch", "jax", "cupy") if importlib.util.find_spec(name)]
    config["frameworks"] = ", ".join(frameworks)
    if mode == "dicts":
        return config
    for name, value in config.items():
        print(f"{name + ':':12} {value}")
    return None
