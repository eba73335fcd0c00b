# SPDX-License-Identifier: BSD-3-Clause
"""What XLA calls, on the CPU and, where JAX has one, on a GPU."""
from __future__ import annotations

import importlib

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")

import batchqr  # noqa: E402
from conftest import check_factors, random  # noqa: E402


with_jax = pytest.importorskip("batchqr.jax")
pytestmark = pytest.mark.usefixtures("jax_device")


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (2, 4, 4), (3, 1), (1, 3), (2, 0, 3), (3, 0)])
def test_jit(dtype, shape):
    a = random(shape, dtype)
    check_factors(a, *map(np.asarray, jax.jit(batchqr.qr)(a)))
    check_factors(a, *map(np.asarray, jax.jit(lambda x: batchqr.qr(x, "complete"))(jax.numpy.asarray(a))))
    positive = np.asarray(jax.jit(lambda x: batchqr.qr(x, "r", positive=True))(jax.numpy.asarray(a)))
    assert (np.diagonal(positive, 0, -2, -1).real >= 0).all()


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


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 2)])
def test_derivatives(shape):
    from jax.test_util import check_grads

    def check(function, *arguments, order):
        check_grads(jax.jit(function), arguments, order=order)

    for dtype, order in (("float64", 2), ("complex128", 1)):
        a, b = jax.numpy.asarray(random(shape, dtype)), jax.numpy.asarray(random((*shape[:-1], 2), dtype, 1))
        check(lambda x: tuple(batchqr.qr(x)), a, order=order)
        check(lambda x, y: batchqr.lstsq(x, y)[:2], a, b, order=order)
        adjoint = a.swapaxes(-1, -2).conj()
        check(lambda x, y: batchqr.lstsq(x, y, adjoint=True).x, adjoint, b, order=1)


def test_residual_of_zero_has_a_derivative():
    a = jax.numpy.asarray(random((4, 4), "float64"))
    grad = jax.jit(jax.grad(lambda x: batchqr.lstsq(x, jax.numpy.zeros(4)).norms))(a)
    assert np.isfinite(np.asarray(grad)).all()


def test_install(dtype):
    a = jax.numpy.asarray(random((3, 6, 4), dtype))
    function = jax.jit(jax.numpy.linalg.qr)

    def calls(f):
        return jax.jit(f).lower(a).as_text().count("batchqr_")

    with with_jax.use():
        assert calls(jax.numpy.linalg.qr) == 1
        assert calls(lambda x: jax.numpy.linalg.qr(x, mode="complete")) == 2
        assert calls(lambda x: jax.scipy.linalg.qr(x[0], pivoting=True)) == 2
        for mode in ("full", "economic"):
            q, r, p = jax.scipy.linalg.qr(a, pivoting=True, mode=mode)
            check_factors(np.take_along_axis(np.asarray(a), np.asarray(p)[:, None], -1), np.asarray(q), np.asarray(r))
        check_factors(np.asarray(a), *map(np.asarray, function(a)))
        check_factors(np.asarray(a), *map(np.asarray, jax.numpy.linalg.qr(a, mode="complete")))
        with with_jax.use():
            pass
        assert calls(jax.numpy.linalg.qr) == 1
    assert calls(jax.numpy.linalg.qr) == 0
    check_factors(np.asarray(a), *map(np.asarray, function(a)))


def test_shard_map(jax_device):
    mesh = jax.sharding.Mesh(np.array([jax_device]), ("members",))
    spec = jax.sharding.PartitionSpec("members")
    a = random((4, 5, 3), "float64")
    shard_map = getattr(jax, "shard_map", None) or importlib.import_module("jax.experimental.shard_map").shard_map
    factor = shard_map(lambda x: tuple(batchqr.qr(x)), mesh=mesh, in_specs=spec, out_specs=spec)
    check_factors(a, *map(np.asarray, jax.jit(factor)(jax.numpy.asarray(a))))


def test_what_is_not_finite():
    """In its own member alone."""
    a = random((3, 5, 3), "float64")
    a[1, 2, 0] = np.nan
    q, r = map(np.asarray, jax.jit(batchqr.qr)(a))
    assert np.isnan(r[1]).any()
    check_factors(a[::2], q[::2], r[::2])
    info = np.asarray(jax.jit(lambda x: batchqr.lstsq(x, jax.numpy.ones(5)))(a).info)
    assert info.tolist() == [0, -1, 0]


def test_command_buffers(jax_device):
    """XLA records calls on a GPU, in a program with enough of them, and replays the graph on what is there then."""
    if jax_device.platform == "cpu":
        pytest.skip("the CPU has no command buffers")

    def program(a):
        found = []
        for _ in range(8):
            q, r = batchqr.qr(a)
            found.append(batchqr.svdvals(r))
            a = q * batchqr.eigvalsh(r @ r.swapaxes(-1, -2))[..., None, :]
        return a, jax.numpy.stack(found)

    compiled, counts = jax.jit(program), []
    for run in range(20):
        a = random((10, 7, 5), "float64", run)
        before = with_jax._xla._jax.calls_on_cuda()
        got = compiled(jax.device_put(a, jax_device))
        counts.append(with_jax._xla._jax.calls_on_cuda() - before)
        values = np.linalg.svd(a, compute_uv=False)
        assert np.allclose(np.asarray(got[1])[0], values, atol=1e-12)
        assert np.allclose(np.asarray(got[1])[1], values**2, atol=1e-11)
        del got
    assert counts[0] >= 24 and min(counts) == 0, counts
