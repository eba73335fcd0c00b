# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")

import batchqr  # noqa: E402
from conftest import check_factors, random  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_host():
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (0, 3, 3), (2, 4, 4)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(dtype, shape, mode):
    a = random(shape, dtype)
    result = batchqr.qr(jax.numpy.asarray(a), mode)
    assert isinstance(result, batchqr.QRResult) and isinstance(result.Q, jax.Array)
    check_factors(a, *map(np.asarray, result))


def test_other_routines(dtype):
    a, b = random((3, 6, 4), dtype), random((3, 6, 2), dtype)
    factored = batchqr.geqrf(jax.numpy.asarray(a))
    q = batchqr.householder_product(*factored)
    check_factors(a, np.asarray(q), np.triu(np.asarray(factored.a)[:, :4]))
    applied = batchqr.ormqr(*factored, jax.numpy.asarray(b), transpose=True)
    assert np.allclose(np.asarray(applied)[:, :4], np.asarray(q).conj().swapaxes(1, 2) @ b, atol=1e-4)
    x = batchqr.lstsq(jax.numpy.asarray(a), jax.numpy.asarray(b)).x
    assert isinstance(x, jax.Array) and np.allclose(np.asarray(x), batchqr.lstsq(a, b).x, atol=1e-4)


def test_what_is_not_taken():
    eye, info = jax.numpy.eye(3), np.zeros((), np.int32)
    with pytest.raises(TypeError, match="info: not for JAX"):
        batchqr.qr(eye, info=info)
    with pytest.raises(TypeError, match="Plan"):
        batchqr.Plan("qr", eye)
    with pytest.raises(ValueError, match="the last two axes"):
        batchqr.qr(eye[0])
    with pytest.raises(TypeError, match="float16"):
        batchqr.qr(eye.astype("float16"))
    with pytest.raises(ValueError, match="3 rows"):
        batchqr.lstsq(eye, eye[:2])
