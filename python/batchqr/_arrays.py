# SPDX-License-Identifier: BSD-3-Clause
"""How arrays lie in memory, in the library's words: leading dimensions and strides, counted in elements."""
from functools import lru_cache

Shape = tuple[int, ...]
Matrix = tuple[int, int, int]  # leading dimension, elements from member to member, elements from row to row

_LARGEST_INT = 2**31 - 1


def count(shape: Shape) -> int:
    members = 1
    for size in shape:
        members *= size
    return members


def extent(shape: Shape, strides: Shape) -> tuple[int, int]:
    """Where the elements lie, counted from the first one: from which, and up to which they do not reach."""
    if 0 in shape:
        return 0, 0
    reach = [(size - 1) * stride for size, stride in zip(shape, strides)]
    return sum(x for x in reach if x < 0), 1 + sum(x for x in reach if x > 0)


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape to which arrays of these two are broadcast."""
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b))
    if any(x != y and x != 1 and y != 1 for x, y in pairs):
        raise ValueError(f"leading axes {a} and {b} cannot be broadcast")
    return tuple(y if x == 1 else x for x, y in pairs)


def _batch_stride(shape: Shape, strides: Shape) -> int | None:
    """The one stride that walks through all batch axes in order; None where there is none. -1: there is one member."""
    innermost = expected = -1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 1:
            continue
        if innermost == -1:
            innermost = stride
        elif stride != expected:
            return None
        if stride < 0:
            return None
        expected = stride * size
    return innermost


@lru_cache(maxsize=4096)
def strides_by_columns(shape: Shape) -> Shape:
    """Of an array (..., m, n) whose members are stored by columns, one after the other."""
    strides, step = [], 1
    for size in (shape[-2], shape[-1], *reversed(shape[:-2])):
        strides.append(step)
        step *= max(1, size)
    return (*reversed(strides[2:]), strides[0], strides[1])


@lru_cache(maxsize=4096)
def columns(shape: Shape, strides: Shape) -> Matrix | None:
    """Of an array (..., m, n) whose members are stored by columns and do not overlap; else None."""
    m, n = shape[-2:]
    if 0 in shape:
        return max(1, m), max(1, m) * n, 1
    ld = strides[-1] if n > 1 else m
    if (m > 1 and strides[-2] != 1) or not m <= ld <= _LARGEST_INT:
        return None
    stride = _batch_stride(shape[:-2], strides[:-2])
    extent = ld * (n - 1) + m
    if stride is None or 0 <= stride < extent:
        return None
    return ld, extent if stride == -1 else stride, 1


@lru_cache(maxsize=4096)
def any_strides(shape: Shape, strides: Shape) -> Matrix | None:
    """Of an array (..., m, n) that is only read: by rows, backwards, with repeated elements; None where the library has
    no words for it."""
    by_columns = columns(shape, strides)
    if by_columns:
        return by_columns
    m, n = shape[-2:]
    stride = _batch_stride(shape[:-2], strides[:-2])
    row, ld = strides[-2:]
    if n == 1:
        ld = max(1, m)
    if m == 1:
        row = 2  # any number but 0 and 1, which stand for storage by columns
    if stride is None or row in (0, 1) or abs(ld) > _LARGEST_INT:
        return None
    return ld, max(0, stride), row


@lru_cache(maxsize=4096)
def written(shape: Shape, strides: Shape) -> Matrix | None:
    """Of an array (..., m, n) that QR writes: by columns or by rows, without overlap; else None."""
    by_columns = columns(shape, strides)
    if by_columns:
        return by_columns
    m, n = shape[-2:]
    by_rows = columns((*shape[:-2], n, m), (*strides[:-2], strides[-1], strides[-2]))
    if by_rows is None or by_rows[0] == 1:
        return None
    return 1, by_rows[1], by_rows[0]


@lru_cache(maxsize=4096)
def vector(shape: Shape, strides: Shape) -> int | None:
    """Elements from one member to the next, where the members of an array (..., k) have adjacent elements and do not
    overlap; else None."""
    if 0 in shape:
        return shape[-1]
    if shape[-1] > 1 and strides[-1] != 1:
        return None
    stride = _batch_stride(shape[:-1], strides[:-1])
    if stride is None or 0 <= stride < shape[-1]:
        return None
    return shape[-1] if stride == -1 else stride
