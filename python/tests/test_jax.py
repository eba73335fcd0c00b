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
    with pytest.raises(TypeError, match="traces"):
        jax.jit(batchqr.ormqr)(*batchqr.geqrf(eye), eye)
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


# --- what XLA calls

with_jax = pytest.importorskip("batchqr.jax")
traced = pytest.mark.skipif(with_jax._jax is None, reason="built where JAX's headers were not")


@traced
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (2, 4, 4), (3, 1), (1, 3), (2, 0, 3), (3, 0)])
def test_jit(dtype, shape):
    a = random(shape, dtype)
    check_factors(a, *map(np.asarray, jax.jit(batchqr.qr)(a)))
    check_factors(a, *map(np.asarray, jax.jit(lambda x: batchqr.qr(x, "complete"))(jax.numpy.asarray(a))))
    positive = np.asarray(jax.jit(lambda x: batchqr.qr(x, "r", positive=True))(jax.numpy.asarray(a)))
    assert (np.diagonal(positive, 0, -2, -1).real >= 0).all()


@traced
def test_vmap_is_one_call(dtype):
    """Over the axis in the middle, the other one being a batch axis already."""
    a = random((2, 6, 5, 4), dtype)
    mapped = jax.jit(jax.vmap(batchqr.qr, in_axes=1))
    q, r = mapped(jax.numpy.asarray(a))
    check_factors(a.swapaxes(0, 1).reshape(6, 2, 5, 4), np.asarray(q), np.asarray(r))
    text = mapped.lower(jax.numpy.asarray(a)).as_text()
    assert text.count("batchqr_qr") == 1 and "while" not in text
    x = jax.vmap(batchqr.lstsq, in_axes=(1, None))(jax.numpy.asarray(a), random((2, 5, 3), dtype)).x
    assert x.shape == (6, 2, 4, 3)


@traced
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 2)])
def test_derivatives(shape):
    from jax.test_util import check_grads
    for dtype, order in (("float64", 2), ("complex128", 1)):
        a, b = jax.numpy.asarray(random(shape, dtype)), jax.numpy.asarray(random((*shape[:-1], 2), dtype, 1))
        check_grads(lambda x: tuple(batchqr.qr(x)), (a,), order=order)
        check_grads(lambda x, y: batchqr.lstsq(x, y)[:2], (a, b), order=order)
        adjoint = a.swapaxes(-1, -2).conj()
        check_grads(lambda x, y: batchqr.lstsq(x, y, adjoint=True).x, (adjoint, b), order=1)


@traced
def test_residual_of_zero_has_a_derivative():
    a = jax.numpy.asarray(random((4, 4), "float64"))
    grad = jax.jit(jax.grad(lambda x: batchqr.lstsq(x, jax.numpy.zeros(4)).norms))(a)
    assert np.isfinite(np.asarray(grad)).all()


@traced
def test_install(dtype):
    a = jax.numpy.asarray(random((3, 6, 4), dtype))
    function = jax.jit(jax.numpy.linalg.qr)

    def calls(f):
        return jax.jit(f).lower(a).as_text().count("batchqr_")

    with with_jax.use():
        assert calls(jax.numpy.linalg.qr) == 1
        assert calls(lambda x: jax.numpy.linalg.qr(x, mode="complete")) == 2
        assert calls(lambda x: jax.scipy.linalg.qr(x[0], pivoting=True)) == 1  # Q of JAX's pivoted factorization
        check_factors(np.asarray(a), *map(np.asarray, function(a)))
        check_factors(np.asarray(a), *map(np.asarray, jax.numpy.linalg.qr(a, mode="complete")))
        with with_jax.use():
            pass
        assert calls(jax.numpy.linalg.qr) == 1
    assert calls(jax.numpy.linalg.qr) == 0
    check_factors(np.asarray(a), *map(np.asarray, function(a)))


@traced
def test_shard_map():
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("members",))
    spec = jax.sharding.PartitionSpec("members")
    a = random((4, 5, 3), "float64")
    factor = jax.shard_map(lambda x: tuple(batchqr.qr(x)), mesh=mesh, in_specs=spec, out_specs=spec)
    check_factors(a, *map(np.asarray, jax.jit(factor)(jax.numpy.asarray(a))))


@traced
def test_what_is_not_finite():
    """In its own member alone."""
    a = random((3, 5, 3), "float64")
    a[1, 2, 0] = np.nan
    q, r = map(np.asarray, jax.jit(batchqr.qr)(a))
    assert np.isnan(r[1]).any()
    check_factors(a[::2], q[::2], r[::2])
    info = np.asarray(jax.jit(lambda x: batchqr.lstsq(x, jax.numpy.ones((3, 5))))(a).info)
    assert info.tolist() == [0, -1, 0]
