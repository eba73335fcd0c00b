# SPDX-License-Identifier: BSD-3-Clause
"""Prints the folder of the headers that jaxlib brings for XLA's foreign functions; nothing where it is not installed."""
import importlib.util
import pathlib

found = importlib.util.find_spec("jaxlib")
if found and found.origin:
    include = pathlib.Path(found.origin).parent / "include"
    if (include / "xla/ffi/api/ffi.h").is_file():
        print(include)
