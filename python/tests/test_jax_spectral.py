# SPDX-License-Identifier: BSD-3-Clause
"""Singular values, eigenvalues and ranks as XLA calls them, on the CPU and, where JAX has one, on a GPU."""
from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("jax.test_util")

import batchqr  # noqa: E402
from conftest import adjoint, check_orthonormal, random, tolerance  # noqa: E402

with_jax = pytest.importorskip("batchqr.jax")
pytestmark = pytest.mark.usefixtures("jax_device")

jnp = jax.numpy
SIZES = [(5, 5), (2, 6, 3), (2, 3, 6), (3, 1), (1, 3), (3, 0), (0, 4, 3)]


def numpy(x):
    return jax.tree.map(np.asarray, tuple(x) if isinstance(x, tuple) else x)


def norm(a):
    return np.linalg.norm(a, axis=(-2, -1), keepdims=True)


def check_svd(a, u, s, vh):
    assert u.dtype == vh.dtype == a.dtype and s.dtype == a.real.dtype and (np.diff(s) <= 0).all()
    check_orthonormal(u)
    check_orthonormal(adjoint(vh))
    if 0 not in a.shape:
        k = s.shape[-1]
        assert (np.abs((u[..., :k] * s[..., None, :]) @ vh[..., :k, :] - a) <= tolerance(a) * norm(a)).all()


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_svd(dtype, shape, full):
    a = random(shape, dtype)
    result = jax.jit(lambda x: batchqr.svd(x, full))(jnp.asarray(a))
    assert isinstance(result, batchqr.SVDResult)
    u, s, vh = numpy(result)
    *members, m, n = shape
    k = min(m, n)
    assert u.shape == (*members, m, m if full else k) and vh.shape == (*members, n if full else k, n)
    check_svd(a, u, s, vh)
    assert np.abs(numpy(jax.jit(batchqr.svdvals)(jnp.asarray(a))) - s).max(initial=0) <= tolerance(a) * s.max(initial=1)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5, 5), (1, 1), (0, 0), (0, 3, 3)])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_eigh(dtype, shape, lower):
    a = random(shape, dtype)
    a = a + adjoint(a)
    given = np.where(np.tri(shape[-1], k=-1, dtype=bool).T if lower else np.tri(shape[-1], k=-1, dtype=bool), np.nan, a)
    w, v = numpy(jax.jit(lambda x: batchqr.eigh(x, lower=lower))(jnp.asarray(given)))
    assert w.shape == shape[:-1] and v.shape == shape and (np.diff(w) >= 0).all()
    check_orthonormal(v)
    if 0 not in shape:
        assert (np.abs((v * w[..., None, :]) @ adjoint(v) - a) <= tolerance(a) * norm(a)).all()
    values = numpy(jax.jit(lambda x: batchqr.eigvalsh(x, lower=lower))(jnp.asarray(given)))
    assert np.abs(values - w).max(initial=0) <= tolerance(a) * np.abs(w).max(initial=1)


def test_same_bits_as_without_jax(jax_device, dtype):
    if jax_device.platform != "cpu":
        pytest.skip("of the CPU backend")
    a = random((3, 7, 5), dtype)
    for function in (batchqr.svd, lambda x: (batchqr.svdvals(x),), lambda x: batchqr.svd(x, True), batchqr.qr_pivoted,
                     lambda x: batchqr.qr_pivoted(x, kmax=2), batchqr.svd_lowrank, lambda x: batchqr.eigh(x[:, :5]),
                     lambda x: (batchqr.pinv(x, method="qr"),), lambda x: (batchqr.matrix_rank(x),)):
        for x, y in zip(numpy(tuple(jax.jit(function)(jnp.asarray(a)))), function(a)):
            assert x.dtype == y.dtype and np.array_equal(x, y)


def test_hard_members(dtype):
    """One with NaN, one of rank 1, and one with singular values at the ends of the range, none of which disturbs others."""
    a = random((4, 6, 4), dtype)
    a[1, 3, 2] = np.nan
    a[2] = a[2][:, :1] * random((1, 4), dtype, 1)
    a[3] *= np.finfo(dtype).tiny * np.array([1, 1e3, 1e6, 1e9])
    u, s, vh = numpy(jax.jit(batchqr.svd)(jnp.asarray(a)))
    assert all(np.isnan(x[1]).all() for x in (u, s, vh))
    check_svd(a[[0, 2]], u[[0, 2]], s[[0, 2]], vh[[0, 2]])
    check_orthonormal(u[3])
    assert s[3, 3] > 0 and np.allclose(s[3], batchqr.svdvals(a[3]), rtol=float(1000 * tolerance(a)), atol=0)
    assert numpy(jax.jit(batchqr.matrix_rank)(jnp.asarray(a))).tolist() == batchqr.matrix_rank(a).tolist()
    assert int(batchqr.matrix_rank(jnp.asarray(a[3]), rtol=0)) == int(batchqr.matrix_rank(a[3], rtol=0)) == 4
    square = np.matmul(adjoint(a), a)
    w, v = numpy(jax.jit(batchqr.eigh)(jnp.asarray(square)))
    assert np.isnan(w[1]).all() and np.isnan(v[1]).all() and np.isfinite(w[[0, 2, 3]]).all()
    with with_jax.use():
        assert np.array_equal(numpy(jax.jit(lambda x: jnp.linalg.svd(x, full_matrices=False))(jnp.asarray(a)))[1], s,
                              equal_nan=True)


def test_vmap_is_one_call(dtype):
    a = jnp.asarray(random((2, 6, 5, 4), dtype))
    for function, name in ((batchqr.svd, "batchqr_gesvd"), (lambda x: batchqr.eigh(x[..., :4, :]), "batchqr_syevd"),
                           (lambda x: batchqr.pinv(x, method="qr"), "batchqr_pinv"),
                           (lambda x: batchqr.lstsq(x, jnp.ones(5, dtype), rcond=0), "batchqr_gelsy")):
        mapped = jax.jit(jax.vmap(function, in_axes=1))
        text = mapped.lower(a).as_text()
        assert text.count(f"@{name}") == 1 and "while" not in text
        for x, y in zip(jax.tree.leaves(mapped(a)), jax.tree.leaves(function(a.swapaxes(0, 1)))):
            assert np.allclose(x, y, rtol=float(tolerance(a)), atol=float(tolerance(a)))


def of_svd(x):
    """What does not depend on the choice of signs."""
    u, s, vh = batchqr.svd(x)
    return s, (u * s[..., None, :] ** 2) @ vh, jnp.abs(u[..., 0, :]), jnp.abs(vh[..., :, 0])


def of_eigh(x):
    w, v = batchqr.eigh(x)
    return w, (v * w[..., None, :] ** 2) @ v.swapaxes(-1, -2).conj(), jnp.abs(v[..., 0, :])


def check_derivatives(function, *arguments, order=1):
    jax.test_util.check_grads(jax.jit(function), arguments, order=order, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function, shape, dtype, order", [
    (of_svd, (3, 3), "float64", 2), (of_svd, (2, 4, 3), "complex128", 1), (of_svd, (3, 4), "float64", 1),
    (of_eigh, (3, 3), "float64", 2), (of_eigh, (3, 3), "complex128", 1),
    (batchqr.svdvals, (4, 3), "complex128", 1), (lambda x: batchqr.eigvalsh(x, lower=False), (3, 3), "complex128", 1),
    (batchqr.pinv, (4, 3), "float64", 2), (lambda x: batchqr.pinv(x, method="qr"), (3, 4), "complex128", 1)])
def test_derivatives(function, shape, dtype, order):
    check_derivatives(function, jnp.asarray(random(shape, dtype)), order=order)


@pytest.mark.parametrize("m, n, dtype, order", [(6, 4, "float64", 2), (4, 6, "complex128", 1), (4, 4, "float64", 1)])
def test_derivatives_of_least_squares_at_constant_rank(m, n, dtype, order):
    """A = B C of rank 2, as functions of B and C."""
    b, c, y = (jnp.asarray(random(size, dtype, i)) for i, size in enumerate([(m, 2), (2, n), (m, 3)]))
    check_derivatives(lambda b, c, y: batchqr.lstsq(b @ c, y, rcond=1e-10)[:2], b, c, y, order=order)
    check_derivatives(lambda b, c: batchqr.pinv(b @ c, rtol=1e-10), b, c)


def test_install(dtype):
    a = jnp.asarray(random((3, 6, 4), dtype))
    square = jnp.asarray(random((3, 4, 4), dtype) + 4 * np.eye(4).astype(dtype))

    def called(f, *arguments):
        text = jax.jit(f).lower(*arguments).as_text()
        return [name for name in ("gesvd_values", "gesvd", "syevd", "geqrf", "orgqr", "ormqr") if f"@batchqr_{name}(" in text]

    linalg = jnp.linalg
    jobs = [(linalg.svd, a, ["gesvd", "geqrf", "orgqr"]), (lambda x: linalg.svd(x, full_matrices=False), a, ["gesvd"]),
            (linalg.svdvals, a, ["gesvd_values"]), (linalg.eigh, square, ["syevd"]), (linalg.pinv, a, ["gesvd"]),
            (linalg.matrix_rank, a, ["gesvd_values"]), (linalg.cond, a, ["gesvd_values"]), (linalg.eigvalsh, square, ["syevd"]),
            (lambda x: linalg.lstsq(x[0], x[0][:, 0])[0], a, ["gesvd"])]
    before = [jax.jit(f)(x) for f, x, _ in jobs]
    with with_jax.use():
        for (f, x, names), theirs in zip(jobs, before):
            assert called(f, x) == names
            for got, expected in zip(jax.tree.leaves(jax.jit(f)(x)), jax.tree.leaves(theirs)):
                assert got.shape == expected.shape and got.dtype == expected.dtype
        check_svd(np.asarray(a), *numpy(linalg.svd(a)))
        check_svd(np.asarray(a).swapaxes(1, 2), *numpy(linalg.svd(a.swapaxes(1, 2))))
        assert np.allclose(linalg.svdvals(a), before[2], rtol=1e-4)
        assert np.allclose(linalg.eigvalsh(square), before[7], rtol=1e-4)
        assert np.allclose(jax.jit(linalg.pinv)(a), before[4], atol=1e-4)
        assert np.allclose(jobs[8][0](a), before[8], atol=1e-4)
        q = jnp.asarray(random((3, 6, 2), dtype))

        def ours(x, c):
            v, tau = linalg.qr(x, mode="raw")
            return jax.lax.linalg.ormqr(v.mT, tau, c, transpose=True)

        assert not hasattr(jax.lax.linalg, "ormqr") or called(ours, a, q) == ["geqrf", "ormqr"]
        assert np.allclose(jax.jit(ours)(a, q)[:, :4], adjoint(np.asarray(batchqr.qr(a).Q)) @ np.asarray(q), atol=1e-4)
        whole = jax.grad(lambda x: jnp.sum(linalg.svd(x, full_matrices=False)[1]))(a)
        u, _, vh = numpy(batchqr.svd(a))
        assert np.allclose(whole, (u @ vh).conj(), atol=1e-4)  # as JAX defines it
    assert called(linalg.svd, a) == [] == called(linalg.eigh, square)


def test_install_leaves_what_was_asked_for():
    a = jnp.asarray(random((3, 4, 4), "float64"))
    algorithm = getattr(jax.lax.linalg, "SvdAlgorithm", None)
    if algorithm is None:
        pytest.skip("this JAX has one algorithm")
    with with_jax.use():
        text = jax.jit(lambda x: jax.lax.linalg.svd(x, algorithm=algorithm.QR)).lower(a).as_text()
    assert "batchqr" not in text


def test_lstsq_of_any_rank(dtype):
    a, b = random((3, 7, 5), dtype), random((3, 7, 2), dtype, 1)
    a[1] = random((7, 2), dtype, 2) @ random((2, 5), dtype, 3)
    a[2] = 0
    for op, right in ((a, b), (adjoint(a), b[:, :5])):
        result = jax.jit(lambda x, y: batchqr.lstsq(x, y, rcond=0))(jnp.asarray(op), jnp.asarray(right))
        x, norms, info, rank = numpy(result)
        assert isinstance(result, batchqr.LstsqRankResult) and rank.tolist() == [5, 2, 0] and not info.any()
        for i in range(3):
            expected = np.linalg.lstsq(op[i], right[i], rcond=1e-5)[0]
            assert np.abs(x[i] - expected).max() <= 100 * tolerance(a) * max(1, np.abs(expected).max())
            residual = np.linalg.norm(right[i] - op[i] @ expected, axis=0)
            assert np.abs(norms[i] - residual).max() <= 100 * tolerance(a) * np.linalg.norm(right[i])
    again = batchqr.lstsq(jnp.asarray(a), jnp.asarray(right), rcond=0, adjoint=True)
    assert np.allclose(again.x, x, rtol=float(tolerance(a)), atol=float(tolerance(a)))
    vector = batchqr.lstsq(jnp.asarray(op), jnp.asarray(right[0, :, 0]), rcond=0)
    assert vector.x.shape == (3, 7) and vector.norms.shape == (3,)


def test_tolerances():
    a = jnp.asarray(np.diag([1, 1e-3, 1e-6, 0]))
    for function, expected in ((lambda x: batchqr.lstsq(x, x, rcond=1e-4).rank, 2), (lambda x: batchqr.lstsq(x, x, rcond=0).rank, 3),
                               (lambda x: batchqr.matrix_rank(x, rtol=1e-4), 2), (lambda x: batchqr.matrix_rank(x, atol=1e-2), 1),
                               (lambda x: batchqr.qr_pivoted(x, rtol=1e-4).rank, 2), (lambda x: batchqr.qr_pivoted(x, kmax=1).rank, 1)):
        assert int(jax.jit(function)(a)) == expected
    for method in ("svd", "qr"):
        assert np.allclose(batchqr.pinv(a, rtol=1e-4, method=method), np.diag([1, 1e3, 0, 0]))


def test_arguments_are_checked():
    a = jnp.asarray(random((3, 4, 6), "float64"))
    for call, message in ((lambda: batchqr.eigh(a), "of one length"), (lambda: batchqr.pinv(a, rtol=-1), "rtol = -1"),
                          (lambda: batchqr.pinv(a, method="lu"), "one of svd, qr"),
                          (lambda: batchqr.svd_lowrank(a, q=-1), "q = -1"), (lambda: batchqr.qr_pivoted(a, kmax=0), "kmax = 0"),
                          (lambda: batchqr.lstsq(a, a, rcond=np.nan), "rcond = nan"),
                          (lambda: batchqr.lstsq(a, a[:, :3]), "4 rows are needed"),
                          (lambda: batchqr.householder_product(a, a[..., 0, :4]), "at most as many columns")):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="subset_by_index: not for JAX"):
        batchqr.eigh(a[..., :4], subset_by_index=(0, 1))
    for name in ("info", "handle", "overwrite"):
        with pytest.raises(TypeError, match=f"{name}: not for JAX"):
            batchqr.svd(a, **{name: True})
    with pytest.raises(TypeError, match="float16"):
        batchqr.svd(a.astype("float16"))


def test_ormqr_broadcasts(dtype):
    a, c = random((5, 3), dtype), random((2, 4, 5, 6), dtype)
    factored = batchqr.geqrf(jnp.asarray(a))
    for left, x in ((True, c), (False, c.swapaxes(-1, -2))):
        got = np.asarray(jax.jit(lambda y: batchqr.ormqr(*factored, y, left, True))(jnp.asarray(x)))
        assert np.abs(got - batchqr.ormqr(*batchqr.geqrf(a), x, left, True)).max() <= tolerance(c)
