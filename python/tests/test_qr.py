# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import numpy as np
import pytest

import batchqr
from conftest import SHAPES, check_factors, check_orthonormal, random


@pytest.mark.parametrize("shape", SHAPES)
def test_reduced(framework, dtype, shape):
    a = random(shape, dtype)
    kept = a.copy()
    given = framework.array(a)
    result = batchqr.qr(given)
    assert framework.is_array(result.Q) and framework.is_array(result.R)
    q, r = map(framework.numpy, result)
    k = min(shape[-2:])
    assert q.shape == (*shape[:-1], k) and r.shape == (*shape[:-2], k, shape[-1])
    check_factors(a, q, r)
    assert (framework.numpy(given) == kept).all()
    assert np.array_equal(framework.numpy(batchqr.qr(given, "r")), r) or np.allclose(
        framework.numpy(batchqr.qr(given, "r")), r, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_complete(framework, dtype, shape):
    a = random(shape, dtype)
    q, r = map(framework.numpy, batchqr.qr(framework.array(a), mode="complete"))
    m, n = shape[-2:]
    assert q.shape == (*shape[:-2], m, m) and r.shape == shape
    check_orthonormal(q)
    if m:
        check_factors(a, q, r)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7, 4), (3, 4, 7)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_positive(framework, dtype, shape, mode):
    a = random(shape, dtype)
    q, r = map(framework.numpy, batchqr.qr(framework.array(a), mode, positive=True))
    check_factors(a, q, r)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    assert (diagonal.real >= 0).all() and (diagonal.imag == 0).all()


VIEWS = {
    "by rows": lambda x: np.ascontiguousarray(x),
    "by columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "every second row": lambda x: np.repeat(x, 2, axis=-2)[..., ::2, :],
    "every second column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "rows backwards": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
    "columns backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "members backwards": lambda x: x[::-1].copy()[::-1],
    "axes of the batch exchanged": lambda x: x.swapaxes(0, 1).copy().swapaxes(0, 1),
    "matrix axes outermost": lambda x: np.moveaxis(np.moveaxis(x, (2, 3), (0, 1)).copy(), (0, 1), (2, 3)),
    "one member for all": lambda x: np.broadcast_to(x[:1, :1], x.shape),
    "one member for all, by columns": lambda x: np.broadcast_to(
        np.ascontiguousarray(x[:1, :1].swapaxes(-1, -2)).swapaxes(-1, -2), x.shape),
    "one column for all": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "one row for all": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("size", [(6, 4), (4, 6), (1, 4), (4, 1), (40, 30)])
def test_strides(dtype, view, size):
    a = VIEWS[view](random((3, 2, *size), dtype))
    kept = a.copy()
    check_factors(a, *batchqr.qr(a))
    check_factors(a, *batchqr.qr(a, mode="complete"))
    assert (a == kept).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_out(dtype, order):
    a = random((5, 6, 3), dtype)
    q, r = np.empty((5, 6, 3), dtype, order), np.empty((5, 3, 3), dtype, order)
    result = batchqr.qr(a, out=(q, r))
    assert result.Q is q and result.R is r
    check_factors(a, q, r)
    assert batchqr.qr(a, "r", out=r) is r


def test_out_is_checked():
    a = random((5, 6, 3), "float64")
    r = np.empty((5, 3, 3))
    with pytest.raises(ValueError, match="out of Q of shape"):
        batchqr.qr(a, out=(np.empty((5, 3, 6)), r))
    with pytest.raises(TypeError, match="out of Q is of type float32"):
        batchqr.qr(a, out=(np.empty((5, 6, 3), np.float32), r))
    with pytest.raises(TypeError, match="out: two arrays"):
        batchqr.qr(a, out=r)
    with pytest.raises(TypeError, match="out of R is a list"):
        batchqr.qr(a, "r", out=[])
    with pytest.raises(ValueError, match="overlap"):
        batchqr.qr(a[:, :3], out=(r, r))
    r.flags.writeable = False
    with pytest.raises(ValueError, match="out of R cannot be written to"):
        batchqr.qr(a, "r", out=r)


def shared_with_a():
    """An A and its outputs, some of which lie in A."""
    by_rows = random((4, 6, 4), "float64")
    by_columns = np.ascontiguousarray(by_rows.swapaxes(1, 2)).swapaxes(1, 2)
    r = np.empty((4, 4, 4))
    for a in (by_rows, by_columns):
        for name, q in (("a", lambda x: x), ("a view of all", lambda x: x[...]), ("members backwards", lambda x: x[::-1]),
                        ("columns backwards", lambda x: x[..., ::-1])):
            for overwrite in (False, True):
                copy = a.copy(order="K")
                yield f"{name}, {a.strides}, {overwrite}", copy, (q(copy), r), overwrite
        copy = a.copy(order="K")
        yield "R", copy, (np.empty(a.shape), copy[:, 1:5]), False


def test_outputs_in_a():
    for name, a, (q, r), overwrite in shared_with_a():
        kept = a.copy()
        result = batchqr.qr(a, out=(q, r), overwrite=overwrite)
        assert result.Q is q and result.R is r, name
        check_factors(kept, q, r)
    a = random((6, 4), "float64")
    expected = batchqr.qr(a, "r")
    assert np.array_equal(batchqr.qr(a, "r", out=a[2:]), expected)


def test_overwrite(framework, dtype):
    a = random((4, 30, 20), dtype)
    check_factors(a, *map(framework.numpy, batchqr.qr(framework.array(a.copy()), overwrite=True)))


def test_read_only_is_never_overwritten(dtype):
    a = random((4, 30, 20), dtype)
    kept = a.copy()
    a.flags.writeable = False
    batchqr.qr(a, overwrite=True)
    assert (a == kept).all()


def test_info_and_nan(dtype):
    a = random((4, 6, 3), dtype)
    a[1, 2, 1] = np.nan
    a[2, :, 1] = 0
    info = np.full(4, 7, np.int32)
    q, r = batchqr.qr(a, info=info)
    assert info.tolist() == [0, -1, 2, 0]
    assert np.isnan(r[1]).any()
    check_factors(a[[0, 3]], q[[0, 3]], r[[0, 3]])
    with pytest.raises(ValueError, match="int32"):
        batchqr.qr(a, info=np.zeros(4, np.int64))


def test_other_inputs():
    q, r = batchqr.qr([[1, 2], [3, 4]])
    assert q.dtype == np.float64
    check_factors(np.array([[1.0, 2], [3, 4]]), q, r)

    class OnlyDLPack:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **options):
            return self.x.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    a = random((3, 5, 2), "float64")
    check_factors(a, *batchqr.qr(OnlyDLPack(a)))
    swapped = a.astype(a.dtype.newbyteorder())
    check_factors(a, *batchqr.qr(swapped))
    unaligned = np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(np.float64).reshape(a.shape)
    check_factors(a, *batchqr.qr(unaligned))


def test_errors():
    with pytest.raises(ValueError, match="must be two at least"):
        batchqr.qr(np.zeros(3))
    with pytest.raises(TypeError, match="float16"):
        batchqr.qr(np.zeros((3, 3), np.float16))
    with pytest.raises(ValueError, match="one of reduced"):
        batchqr.qr(np.zeros((3, 3)), "full")
    with pytest.raises(TypeError, match="positive = 'yes'"):
        batchqr.qr(np.zeros((3, 3)), positive="yes")
    with pytest.raises(TypeError, match="of type object"):
        batchqr.qr(np.zeros((3, 3), object))


def test_wrong_arrays_of_frameworks(framework):
    if framework.name == "numpy":
        pytest.skip("needs two frameworks")
    with pytest.raises(TypeError, match="beside"):
        batchqr.lstsq(framework.array(np.eye(3)), np.eye(3))
