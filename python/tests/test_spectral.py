# SPDX-License-Identifier: BSD-3-Clause
"""Rank, singular values and eigenvalues."""
from __future__ import annotations

import numpy as np
import pytest

import batchqr
from conftest import SHAPES, adjoint, check_orthonormal, random, tolerance


def norms(a):
    return np.linalg.norm(a, axis=(-2, -1), keepdims=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_svd(framework, dtype, shape):
    a = random(shape, dtype)
    given = framework.array(a)
    result = batchqr.svd(given)
    assert all(framework.is_array(x) for x in result)
    u, s, vh = map(framework.numpy, result)
    k = min(shape[-2:])
    assert u.shape == (*shape[:-1], k) and s.shape == (*shape[:-2], k) and vh.shape == (*shape[:-2], k, shape[-1])
    assert u.dtype == vh.dtype == a.dtype and s.dtype == a.real.dtype
    assert (np.diff(s, axis=-1) <= 0).all()
    if 0 not in shape:
        assert (np.abs((u * s[..., None, :]) @ vh - a) <= tolerance(a) * norms(a)).all()
    check_orthonormal(u)
    check_orthonormal(adjoint(vh))
    values = framework.numpy(batchqr.svdvals(given))
    assert values.shape == s.shape and np.abs(values - s).max(initial=0) <= tolerance(a) * max(1, s.max(initial=0))
    assert np.array_equal(framework.numpy(given), a)


def test_eigh_overwrites(dtype):
    a = random((3, 5, 5), dtype)
    a = a + adjoint(a)
    by_columns = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    kept = by_columns.copy()
    expected = batchqr.eigh(by_columns)
    assert np.array_equal(by_columns, kept)
    result = batchqr.eigh(by_columns, overwrite=True)
    assert result.eigenvectors is by_columns and np.array_equal(by_columns, expected.eigenvectors)


def test_svd_tells_of_what_is_not_finite(framework):
    a = random((4, 5, 3), "float64")
    a[1, 2, 0] = np.nan
    info = framework.array(np.full(4, 7, np.int32))
    u, s, vh = map(framework.numpy, batchqr.svd(framework.array(a), info=info))
    assert framework.numpy(info).tolist() == [0, -1, 0, 0]
    assert np.isnan(s[1]).all() and np.isfinite(s[[0, 2, 3]]).all() and np.isfinite(u[0]).all()


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (4, 4), (5, 7, 7), (2, 3, 6, 6), (1, 40, 40), (0, 3, 3)])
@pytest.mark.parametrize("lower", [True, False])
def test_eigh(framework, dtype, shape, lower):
    a = random(shape, dtype)
    a = a + adjoint(a)
    one_triangle = np.tril(a) if lower else np.triu(a)
    w, v = map(framework.numpy, batchqr.eigh(framework.array(one_triangle), lower=lower))
    assert w.shape == shape[:-1] and v.shape == shape and w.dtype == a.real.dtype
    assert (np.diff(w, axis=-1) >= 0).all()
    if 0 not in shape:
        assert (np.abs((v * w[..., None, :]) @ adjoint(v) - a) <= tolerance(a) * norms(a)).all()
    check_orthonormal(v)
    values = framework.numpy(batchqr.eigvalsh(framework.array(one_triangle), lower=lower))
    assert np.abs(values - w).max(initial=0) <= tolerance(a) * max(1, np.abs(w).max(initial=0))


@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (5, 7, 7), (2, 3, 6, 6), (0, 3, 3)])
def test_parts_of_the_spectrum(framework, dtype, shape):
    a = random(shape, dtype)
    a = a + adjoint(a)
    given, n = framework.array(a), shape[-1]
    w, v = map(framework.numpy, batchqr.eigh(given))
    for first, last in {(0, 0), (n - 1, n - 1), (n // 3, n // 2), (0, n - 1)}:
        part = batchqr.eigh(given, subset_by_index=(first, last))
        assert np.array_equal(framework.numpy(part.eigenvalues), w[..., first:last + 1])
        assert np.array_equal(framework.numpy(part.eigenvectors), v[..., first:last + 1])
        values = framework.numpy(batchqr.eigvalsh(given, subset_by_index=[first, last]))
        assert values.shape == (*shape[:-2], last + 1 - first)
        assert np.abs(values - w[..., first:last + 1]).max(initial=0) <= tolerance(a) * max(1, np.abs(w).max(initial=0))
    for low, high in (-1, 1), (-np.inf, 0), (0.5, np.inf), (1e30, np.inf):
        part_w, part_v = map(framework.numpy, batchqr.eigh(given, subset_by_value=(low, high)))
        wanted = (low < w) & (w <= high)
        found = np.arange(n) < wanted.sum(-1)[..., None]
        assert part_w.shape == w.shape and np.isnan(part_w[~found]).all() and np.array_equal(part_w[found], w[wanted])
        assert np.array_equal(part_v.swapaxes(-1, -2)[found], v.swapaxes(-1, -2)[wanted])
        values = framework.numpy(batchqr.eigvalsh(given, subset_by_value=(low, high)))
        assert values.shape == w.shape and np.isnan(values).sum() == (~found).sum()


@pytest.mark.parametrize("shape", SHAPES)
def test_qr_pivoted(framework, dtype, shape):
    a = random(shape, dtype)
    q, r, p, rank = map(framework.numpy, batchqr.qr_pivoted(framework.array(a)))
    m, n = shape[-2:]
    k = min(m, n)
    assert q.shape == (*shape[:-1], k) and r.shape == (*shape[:-2], k, n)
    assert p.shape == (*shape[:-2], n) and p.dtype == np.int32 and rank.shape == shape[:-2]
    assert (rank == k).all() and (np.sort(p) == np.arange(n)).all() and (np.tril(r, -1) == 0).all()
    if 0 not in shape:
        permuted = np.take_along_axis(a, p[..., None, :].astype(int), -1)
        assert (np.abs(q @ r - permuted) <= tolerance(a) * norms(a)).all()
        diagonal = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        assert (np.diff(diagonal) <= tolerance(a) * diagonal.max()).all()
    check_orthonormal(q)


def of_rank(rank, members, m, n, dtype):
    return random((members, m, rank), dtype) @ random((members, rank, n), dtype, seed=1)


def test_rank(framework, dtype):
    a = np.stack([of_rank(r, 1, 12, 9, dtype)[0] for r in (3, 0, 9, 1)])
    given = framework.array(a)
    ranks = framework.numpy(batchqr.matrix_rank(given))
    assert ranks.dtype == np.int32 and ranks.tolist() == [3, 0, 9, 1] == np.linalg.matrix_rank(a).tolist()
    assert framework.numpy(batchqr.matrix_rank(given, atol=1e9)).tolist() == [0, 0, 0, 0]
    q, r, p, rank = map(framework.numpy, batchqr.qr_pivoted(given, rtol=100 * tolerance(a)))
    assert rank.tolist() == [3, 0, 9, 1]
    assert (r[0, 3:] == 0).all() and (r[1] == 0).all()
    permuted = np.take_along_axis(a, p[..., None, :].astype(int), -1)
    assert np.abs(q @ r - permuted).max() <= 200 * tolerance(a) * norms(a).max()
    assert framework.numpy(batchqr.qr_pivoted(given, kmax=2, rtol=100 * tolerance(a)).rank).tolist() == [2, 0, 2, 1]


@pytest.mark.parametrize("shape", SHAPES)
def test_full_svd(framework, dtype, shape):
    a = random(shape, dtype)
    u, s, vh = map(framework.numpy, batchqr.svd(framework.array(a), True))
    *members, m, n = shape
    k = min(m, n)
    assert u.shape == (*members, m, m) and s.shape == (*members, k) and vh.shape == (*members, n, n)
    check_orthonormal(u)
    check_orthonormal(adjoint(vh))
    thin = batchqr.svd(framework.array(a))
    for whole, part in ((u[..., :k], thin.U), (s, thin.S), (vh[..., :k, :], thin.Vh)):
        assert np.array_equal(whole, framework.numpy(part))


@pytest.mark.parametrize("method", ["svd", "qr"])
@pytest.mark.parametrize("size", [(7, 4), (4, 7), (5, 5), (1, 3), (0, 3), (3, 0)])
def test_pinv(framework, dtype, size, method):
    a = random((3, *size), dtype)
    if min(size) > 2:
        a[1] = of_rank(2, 1, *size, dtype)[0]
    given, info = framework.array(a), framework.array(np.full(3, 7, np.int32))
    x = framework.numpy(batchqr.pinv(given, method=method, info=info))
    assert np.array_equal(framework.numpy(given), a) and (0 in size or not framework.numpy(info).any())
    expected = np.linalg.pinv(a, rcond=max(size) * np.finfo(a.dtype).eps) if 0 not in size else np.zeros(x.shape)
    assert x.shape == (3, *size[::-1]) and x.dtype == a.dtype
    assert np.abs(x - expected).max(initial=0) <= 1000 * tolerance(a) * max(1, np.abs(expected).max(initial=0)) ** 2


@pytest.mark.parametrize("method", ["svd", "qr"])
def test_pinv_tells_of_what_is_not_finite(method):
    a, info = random((3, 5, 3), "float64"), np.full(3, 7, np.int32)
    a[1, 2, 2] = np.inf
    x = batchqr.pinv(a, method=method, info=info)
    assert info.tolist() == [0, -1, 0] and np.isnan(x[1]).all()
    assert np.allclose(x[::2], np.linalg.pinv(a[::2]))


@pytest.mark.parametrize("method", ["svd", "qr"])
def test_tolerance_of_pinv(method):
    a = np.diag([1, 1e-3, 1e-6, 0])
    assert np.allclose(batchqr.pinv(a, rtol=1e-4, method=method), np.diag([1, 1e3, 0, 0]))
    assert np.allclose(batchqr.pinv(a, method=method), np.diag([1, 1e3, 1e6, 0]))


def test_svd_lowrank(framework, dtype):
    a = of_rank(4, 3, 30, 20, dtype)
    u, s, v = map(framework.numpy, batchqr.svd_lowrank(framework.array(a), q=6))
    assert u.shape == (3, 30, 6) and s.shape == (3, 6) and v.shape == (3, 20, 6)
    check_orthonormal(u)
    check_orthonormal(v)
    assert (np.abs((u * s[..., None, :]) @ adjoint(v) - a) <= 10 * tolerance(a) * norms(a)).all()
    again = batchqr.svd_lowrank(framework.array(a), q=6)
    assert np.array_equal(framework.numpy(again.S), s)


@pytest.mark.parametrize("call, error, message", [
    (lambda a: batchqr.eigh(a), ValueError, "of one length"),
    (lambda a: batchqr.eigh(a[..., :4], lower="U"), TypeError, "lower = 'U'"),
    (lambda a: batchqr.eigh(a[..., :4], subset_by_index=(2, 4)), ValueError, "0 <= first <= last < 4"),
    (lambda a: batchqr.eigh(a[..., :4], subset_by_index=(2, 1)), ValueError, "0 <= first <= last < 4"),
    (lambda a: batchqr.eigh(a[..., :4], subset_by_index=(-1, 1)), ValueError, "subset_by_index = -1"),
    (lambda a: batchqr.eigh(a[..., :4], subset_by_index=3), TypeError, "subset_by_index = 3"),
    (lambda a: batchqr.eigvalsh(a[..., :4], subset_by_value=(1, 1)), ValueError, "less than"),
    (lambda a: batchqr.eigvalsh(a[..., :4], subset_by_value=(0, np.nan)), ValueError, "less than"),
    (lambda a: batchqr.eigh(a[..., :4], subset_by_value=(0, 1), subset_by_index=(0, 1)), ValueError, "both given"),
    (lambda a: batchqr.svd(a, "no"), TypeError, "full_matrices = 'no'"),
    (lambda a: batchqr.matrix_rank(a, rtol=-1), ValueError, "rtol = -1"),
    (lambda a: batchqr.matrix_rank(a, atol=np.nan), ValueError, "atol = nan"),
    (lambda a: batchqr.matrix_rank(a, rtol=np.ones(3)), TypeError, "rtol = array"),
    (lambda a: batchqr.pinv(a, method="lu"), ValueError, "method = 'lu': one of svd, qr"),
    (lambda a: batchqr.pinv(a, rtol=np.inf, method="qr"), ValueError, "rtol = inf"),
    (lambda a: batchqr.qr_pivoted(a, kmax=0), ValueError, "kmax = 0"),
    (lambda a: batchqr.qr_pivoted(a, kmax=2.0), TypeError, "kmax = 2.0: an integer"),
    (lambda a: batchqr.svd_lowrank(a, q=-1), ValueError, "q = -1"),
    (lambda a: batchqr.svd_lowrank(a, niter=2**31), ValueError, "niter = 2147483648"),
    (lambda a: batchqr.svd_lowrank(a, seed=2**64), ValueError, "seed = 18446744073709551616"),
    (lambda a: batchqr.lstsq(a, a, rcond=-1), ValueError, "rcond = -1"),
    (lambda a: batchqr.lstsq(a, a, rcond="auto"), TypeError, "rcond = 'auto'"),
    (lambda a: batchqr.svd(a.astype("float16")), TypeError, "array of type float16"),
    (lambda a: batchqr.svd(None), TypeError, "NoneType, to numpy an array of type object"),
    (lambda a: batchqr.svd(a, handle=3), TypeError, "handle = 3: a batchqr.Handle"),
    (lambda a: batchqr.svd(a, info=[0, 0, 0]), TypeError, "info is a list"),
])
def test_arguments_are_checked(call, error, message):
    with pytest.raises(error, match=message):
        call(random((3, 4, 6), "float64"))


def test_limits_beyond_what_there_is():
    a = random((4, 3), "float64")
    assert batchqr.qr_pivoted(a, kmax=2**40).rank == 3
    assert batchqr.svd_lowrank(a, 50).S.shape == (3,)
    assert batchqr.svd_lowrank(a, 2, seed=2**64 - 1).S.shape == (2,)


def test_of_jax():
    jax = pytest.importorskip("jax")
    if pytest.importorskip("batchqr._xla")._jax is None:
        pytest.skip("built where JAX's headers were not")
    a = random((3, 5, 4), "float32")
    with jax.default_device(jax.devices("cpu")[0]):
        u, s, vh = batchqr.svd(jax.numpy.asarray(a))
        assert all(isinstance(x, jax.Array) for x in (u, s, vh))
        assert np.abs((np.asarray(u) * np.asarray(s)[..., None, :]) @ np.asarray(vh) - a).max() <= 10 * tolerance(a)
        assert isinstance(batchqr.matrix_rank(jax.numpy.asarray(a)), jax.Array)


@pytest.mark.parametrize("call", [
    lambda a: batchqr.svd(a, 1, overwrite=True),
    lambda a: batchqr.pinv(a, rtol=-1, overwrite=True),
    lambda a: batchqr.pinv(a, rtol=-1, method="qr", overwrite=True),
    lambda a: batchqr.matrix_rank(a, rtol=-1, overwrite=True),
    lambda a: batchqr.eigh(a, lower=1, overwrite=True),
    lambda a: batchqr.eigvalsh(a, lower=1, overwrite=True),
    lambda a: batchqr.qr_pivoted(a, kmax=0, overwrite=True),
    lambda a: batchqr.lstsq(a, np.ones(4), rcond=-1, overwrite=True),
])
def test_wrong_arguments_are_told_before_the_library_is_called(call, monkeypatch):
    def execute(framework, like, handle, op, *rest):
        raise AssertionError(f"{op} was called")

    monkeypatch.setattr("batchqr._operations.execute", execute)
    with pytest.raises((TypeError, ValueError)):
        call(np.asfortranarray(random((4, 4), "float64")))
