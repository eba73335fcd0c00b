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


@pytest.mark.parametrize("size", [(7, 4), (4, 7), (5, 5), (1, 3), (0, 3), (3, 0)])
def test_pinv(framework, dtype, size):
    a = random((3, *size), dtype)
    if min(size) > 2:
        a[1] = of_rank(2, 1, *size, dtype)[0]
    x = framework.numpy(batchqr.pinv(framework.array(a)))
    expected = np.linalg.pinv(a, rcond=max(size) * np.finfo(a.dtype).eps) if 0 not in size else np.zeros(x.shape)
    assert x.shape == (3, *size[::-1]) and x.dtype == a.dtype
    assert np.abs(x - expected).max(initial=0) <= 1000 * tolerance(a) * max(1, np.abs(expected).max(initial=0)) ** 2


def test_svd_lowrank(framework, dtype):
    a = of_rank(4, 3, 30, 20, dtype)
    u, s, v = map(framework.numpy, batchqr.svd_lowrank(framework.array(a), q=6))
    assert u.shape == (3, 30, 6) and s.shape == (3, 6) and v.shape == (3, 20, 6)
    check_orthonormal(u)
    check_orthonormal(v)
    assert (np.abs((u * s[..., None, :]) @ adjoint(v) - a) <= 10 * tolerance(a) * norms(a)).all()
    again = batchqr.svd_lowrank(framework.array(a), q=6)
    assert np.array_equal(framework.numpy(again.S), s)


def test_arguments_are_checked():
    a = random((3, 4, 6), "float64")
    with pytest.raises(ValueError, match="of one length"):
        batchqr.eigh(a)
    with pytest.raises(ValueError, match="rtol = -1"):
        batchqr.matrix_rank(a, rtol=-1)
    with pytest.raises(ValueError, match="kmax = 0"):
        batchqr.qr_pivoted(a, kmax=0)
    with pytest.raises(ValueError, match="q = -1"):
        batchqr.svd_lowrank(a, q=-1)
    with pytest.raises(TypeError, match="float16"):
        batchqr.svd(a.astype("float16"))


def test_of_jax():
    jax = pytest.importorskip("jax")
    a = random((3, 5, 4), "float32")
    with jax.default_device(jax.devices("cpu")[0]):
        u, s, vh = batchqr.svd(jax.numpy.asarray(a))
        assert all(isinstance(x, jax.Array) for x in (u, s, vh))
        assert np.abs((np.asarray(u) * np.asarray(s)[..., None, :]) @ np.asarray(vh) - a).max() <= 10 * tolerance(a)
        assert isinstance(batchqr.matrix_rank(jax.numpy.asarray(a)), jax.Array)
