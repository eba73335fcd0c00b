# SPDX-License-Identifier: BSD-3-Clause
"""How arrays lie in memory, in the library's words: leading dimensions and strides, counted in elements."""
from functools import lru_cache

Shape = tuple[int, ...]

_LARGEST_INT = 2**31 - 1


def _batch_stride(shape: Shape, strides: Shape) -> int | None:
    """The one stride that walks through all batch axes in order; None where there is none. 0: there is one member."""
    innermost = expected = 0
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 1:
            continue
        if innermost == 0:
            innermost = stride
        elif stride != expected:
            return None
        if stride <= 0:
            return None
        expected = stride * size
    return innermost


@lru_cache(maxsize=4096)
def matrix_storage(shape: Shape, strides: Shape) -> tuple[int, int] | None:
    """Leading dimension, and elements from one member to the next, where the members of an array (..., m, n) are
    stored by columns and do not overlap; else None."""
    m, n = shape[-2:]
    if 0 in shape:
        return max(1, m), max(1, m) * n
    ld = strides[-1] if n > 1 else m
    if (m > 1 and strides[-2] != 1) or not m <= ld <= _LARGEST_INT:
        return None
    stride = _batch_stride(shape[:-2], strides[:-2])
    extent = ld * (n - 1) + m
    if stride is None or 0 < stride < extent:
        return None
    return ld, stride or extent


@lru_cache(maxsize=4096)
def vector_storage(shape: Shape, strides: Shape) -> int | None:
    """Elements from one member to the next, where the members of an array (..., k) have adjacent elements and do not
    overlap; else None."""
    if 0 in shape:
        return shape[-1]
    if shape[-1] > 1 and strides[-1] != 1:
        return None
    stride = _batch_stride(shape[:-1], strides[:-1])
    if stride is None or 0 < stride < shape[-1]:
        return None
    return stride or shape[-1]


def count(shape: Shape) -> int:
    members = 1
    for size in shape:
        members *= size
    return members
