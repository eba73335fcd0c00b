# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and flags among the arguments of the package's functions."""
from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def real(name: str, value: Any) -> float:
    """A finite number that is not negative."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} = {value!r}: a real number is needed")
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} = {value}: a number that is not negative")
    return number


def integer(name: str, value: Any, least: int = 0, most: int = 2**31 - 1) -> int:
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} = {value!r}: an integer is needed")
    number = int(value)
    if not least <= number <= most:
        raise ValueError(f"{name} = {value}: an integer from {least} to {most}")
    return number


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} = {value!r}: True or False")
    return bool(value)


def choice(name: str, value: Any, *allowed: str) -> Any:
    if value not in allowed:
        raise ValueError(f"{name} = {value!r}: one of {', '.join(allowed)}")
    return value
