# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import numpy as np
import pytest

import batchqr
from conftest import SHAPES, adjoint, check_factors, check_orthonormal, random, tolerance


@pytest.mark.parametrize("shape", SHAPES)
def test_geqrf_and_householder_product(framework, dtype, shape):
    a = random(shape, dtype)
    result = batchqr.geqrf(framework.array(a))
    factored, tau = map(framework.numpy, result)
    m, n = shape[-2:]
    k = min(m, n)
    assert factored.shape == shape and tau.shape == (*shape[:-2], k)
    q = framework.numpy(batchqr.householder_product(result.a[..., :k], result.tau))
    check_factors(a, q, np.triu(factored[..., :k, :]))


def test_geqrf_overwrites(dtype):
    a = random((3, 6, 4), dtype)
    by_columns = adjoint(adjoint(a).copy())
    by_columns = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    result = batchqr.geqrf(by_columns, overwrite=True)
    assert result.a is by_columns
    assert batchqr.geqrf(a, overwrite=True).a is not a
    assert np.array_equal(batchqr.geqrf(a).a, by_columns)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("size", [(7, 4), (4, 7), (5, 5), (5, 0), (1, 1), (30, 20)])
def test_ormqr(framework, dtype, left, transpose, size):
    a = random((3, *size), dtype)
    p = size[0]
    c = random((3, p, 6) if left else (3, 6, p), dtype, seed=1)
    factored = batchqr.geqrf(framework.array(a))
    q = framework.numpy(batchqr.qr(framework.array(a), mode="complete").Q)
    q = adjoint(q) if transpose else q
    got = framework.numpy(batchqr.ormqr(*factored, framework.array(c), left, transpose))
    expected = q @ c if left else c @ q
    assert got.shape == c.shape
    assert np.abs(got - expected).max() <= 10 * tolerance(c)


def test_ormqr_broadcasts(dtype):
    a, c = random((5, 3), dtype), random((2, 4, 5, 6), dtype)
    factored = batchqr.geqrf(a)
    one = batchqr.ormqr(*factored, c)
    each = np.stack([[batchqr.ormqr(*factored, member) for member in row] for row in c])
    assert np.abs(one - each).max() <= tolerance(c)
    many = batchqr.ormqr(*batchqr.geqrf(random((4, 5, 3), dtype)), c[0, 0])
    assert many.shape == (4, 5, 6)
    with pytest.raises(ValueError, match="broadcast"):
        batchqr.ormqr(*batchqr.geqrf(random((3, 5, 3), dtype)), c)


@pytest.mark.parametrize("adjoint_", [False, True])
@pytest.mark.parametrize("size", [(7, 4), (4, 7), (5, 5), (1, 3), (3, 1), (30, 20)])
def test_lstsq(framework, dtype, adjoint_, size):
    a = random((3, *size), dtype)
    op = adjoint(a) if adjoint_ else a
    b = random((3, op.shape[-2], 2), dtype, seed=2)
    x, norms, info = map(framework.numpy, batchqr.lstsq(framework.array(a), framework.array(b), adjoint=adjoint_))
    assert x.shape == (3, op.shape[-1], 2) and norms.shape == (3, 2) and info.tolist() == [0, 0, 0]
    assert x.dtype == a.dtype and norms.dtype == a.real.dtype
    scale = 100 * tolerance(a)
    for member in range(3):
        expected = np.linalg.lstsq(op[member], b[member], rcond=None)[0]
        condition = np.linalg.cond(op[member])
        assert np.abs(x[member] - expected).max() <= scale * condition * max(1, np.abs(expected).max())
        residual = np.linalg.norm(b[member] - op[member] @ expected, axis=0)
        assert np.abs(norms[member] - residual).max() <= scale * condition


def test_lstsq_broadcasts_and_takes_vectors():
    a, b = random((4, 1, 6, 3), "float64"), random((5, 6, 2), "float64")
    assert batchqr.lstsq(a, b).x.shape == (4, 5, 3, 2)
    x, norms, info = batchqr.lstsq(a, b[0, :, 0])
    assert x.shape == (4, 1, 3) and norms.shape == (4, 1) and info.shape == (4, 1)
    assert np.allclose(x[2, 0], np.linalg.lstsq(a[2, 0], b[0, :, 0], rcond=None)[0])
    with pytest.raises(ValueError, match="rows are needed"):
        batchqr.lstsq(a, b[:, :5])


def test_qr_by_gram_schmidt(dtype):
    a = random((1, 90, 64), dtype)
    half = batchqr.Handle(compute="half")
    for times in (1, 2):  # where there is no such kernel, by reflectors
        q, r = batchqr.qr(a, gram_schmidt=times, handle=half)
        assert np.abs(a - q @ r).max() < 1e-2 and np.abs(adjoint(q) @ q - np.eye(64)).max() < 1e-1
    with pytest.raises(ValueError, match="gram_schmidt = 1, but the compute mode"):
        batchqr.qr(a, gram_schmidt=1)


def test_lstsq_tells_of_its_iterations(framework, dtype):
    a, b = random((2, 7, 3), dtype), random((2, 7, 2), dtype, seed=2)
    result = batchqr.lstsq(framework.array(a), framework.array(b), iterations=True)
    assert (framework.numpy(result.x) == framework.numpy(batchqr.lstsq(framework.array(a), framework.array(b)).x)).all()
    iterations, relres = framework.numpy(result.iterations), framework.numpy(result.relres)
    assert iterations.dtype == np.int32 and relres.dtype == a.real.dtype
    assert iterations.tolist() == [[0, 0]] * 2 and relres.tolist() == [[-1, -1]] * 2  # QR at once
    vector = batchqr.lstsq(framework.array(a), framework.array(b[0, :, 0]), iterations=True)
    assert vector.iterations.shape == (2,) and vector.relres.shape == (2,)
    with pytest.raises(ValueError, match="iterations"):
        batchqr.lstsq(framework.array(a), framework.array(b), rcond=0, iterations=True)


def test_lstsq_leaves_its_arguments_alone(dtype):
    a, b = random((4, 6, 3), dtype), random((4, 6, 2), dtype)
    kept = a.copy(), b.copy()
    batchqr.lstsq(a, b)
    assert (a == kept[0]).all() and (b == kept[1]).all()
    batchqr.lstsq(a, b, overwrite=True)
    assert (b == kept[1]).all()


def test_lstsq_says_what_has_no_solution():
    a, b = random((3, 6, 3), "float64"), random((3, 6, 1), "float64")
    a[1, :, 2] = 0
    a[2, 0, 0] = np.inf
    x, norms, info = batchqr.lstsq(a, b)
    assert info.tolist() == [0, 3, -1]
    assert np.isnan(norms[1:]).all() and np.isfinite(norms[0]).all()


def of_rank(rank, m, n, dtype):
    return random((m, rank), dtype, 4) @ random((rank, n), dtype, 5)


@pytest.mark.parametrize("adjoint_", [False, True])
@pytest.mark.parametrize("size", [(7, 4), (4, 7), (5, 5), (30, 20)])
def test_lstsq_of_any_rank(framework, dtype, adjoint_, size):
    a = np.stack([random(size, dtype), of_rank(2, *size, dtype), np.zeros(size, dtype), of_rank(1, *size, dtype)])
    op = adjoint(a) if adjoint_ else a
    b = random((4, op.shape[-2], 3), dtype, seed=2)
    kept = a.copy()
    given = framework.array(a)
    result = batchqr.lstsq(given, framework.array(b), adjoint=adjoint_, rcond=100 * tolerance(a))
    assert isinstance(result, batchqr.LstsqRankResult) and all(framework.is_array(x) for x in result)
    x, norms, info, rank = map(framework.numpy, result)
    assert rank.tolist() == [min(size), 2, 0, 1] and not info.any() and rank.dtype == np.int32
    assert x.shape == (4, op.shape[-1], 3) and x.dtype == a.dtype and norms.dtype == a.real.dtype
    assert np.array_equal(framework.numpy(given), kept)
    for member in range(4):
        expected, _, _, s = np.linalg.lstsq(op[member], b[member], rcond=100 * tolerance(a))
        condition = s[0] / s[rank[member] - 1] if rank[member] else 1
        assert np.abs(x[member] - expected).max() <= 100 * tolerance(a) * condition ** 2 * max(1, np.abs(expected).max())
        residual = np.linalg.norm(b[member] - op[member] @ expected, axis=0)
        assert np.abs(norms[member] - residual).max() <= 100 * tolerance(a) * condition * np.linalg.norm(b[member])


def test_lstsq_without_tolerance_is_numpys(framework):
    """rcond = 0 is NumPy's None."""
    a, b = of_rank(3, 12, 8, "float64"), random((12,), "float64")
    x, norms, info, rank = map(framework.numpy, batchqr.lstsq(framework.array(a), framework.array(b), rcond=0))
    expected, _, of_numpy, _ = np.linalg.lstsq(a, b, rcond=None)
    assert rank == of_numpy == 3 and x.shape == (8,) and norms.shape == () and np.allclose(x, expected, rtol=1e-10, atol=1e-12)


def test_tolerance_of_lstsq():
    a = np.diag([1, 1e-3, 1e-6, 0])
    for rcond, rank, x in ((1e-4, 2, [1, 1e3, 0, 0]), (0, 3, [1, 1e3, 1e6, 0]), (1e-2, 1, [1, 0, 0, 0])):
        result = batchqr.lstsq(a, np.ones(4), rcond=rcond)
        assert result.rank == rank and np.allclose(result.x, x)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_lstsq_of_any_rank_at_the_ends_of_the_range(scale):
    a, b = random((2, 6, 3), "float64"), random((2, 6, 2), "float64")
    a[1, :, 2] = a[1, :, 0]
    expected, got = batchqr.lstsq(a, b, rcond=0), batchqr.lstsq(a * scale, b * scale, rcond=0)
    assert np.array_equal(got.rank, [3, 2]) and np.allclose(got.x, expected.x, rtol=1e-12)
    assert np.allclose(got.norms / scale, expected.norms, rtol=1e-12)


def test_lstsq_of_any_rank_tells_of_what_is_not_finite(framework):
    a, b = random((4, 6, 3), "float64"), random((4, 6, 2), "float64")
    alone = batchqr.lstsq(a[[0, 3]], b[[0, 3]], rcond=0)
    a[1, 0, 0], b[2, 5, 1] = np.nan, np.inf
    x, norms, info, rank = map(framework.numpy, batchqr.lstsq(framework.array(a), framework.array(b), rcond=0))
    assert info.tolist() == [0, -1, -1, 0] and rank.tolist() == [3, 0, 0, 3]
    assert np.isnan(x[1:3]).all() and np.isnan(norms[1:3]).all()
    assert np.allclose(x[[0, 3]], alone.x, rtol=1e-12) and np.allclose(norms[[0, 3]], alone.norms, rtol=1e-12)


@pytest.mark.parametrize("shape, right_sides", [((2, 0, 3), 2), ((2, 3, 0), 2), ((2, 4, 3), 0), ((0, 4, 3), 2)])
def test_lstsq_of_any_rank_of_nothing(framework, shape, right_sides):
    a, b = random(shape, "float64"), random((*shape[:-1], right_sides), "float64")
    x, norms, info, rank = map(framework.numpy, batchqr.lstsq(framework.array(a), framework.array(b), rcond=0))
    assert x.shape == (shape[0], shape[2], right_sides) and (x == 0).all() and not info.any()
    assert rank.tolist() == [min(shape[1:])] * shape[0]
    assert np.allclose(norms, np.linalg.norm(b, axis=-2) if shape[2] == 0 else 0)


def test_qr_many(framework, dtype):
    sizes = [(5, 3), (3, 5), (1, 1), (0, 2), (2, 0), (40, 40), (5, 3)]
    arrays = [random(size, dtype, seed=i) for i, size in enumerate(sizes)]
    results = batchqr.qr_many([framework.array(a) for a in arrays])
    assert len(results) == len(sizes)
    for a, result in zip(arrays, results):
        q, r = map(framework.numpy, result)
        k = min(a.shape)
        assert q.shape == (a.shape[0], k) and r.shape == (k, a.shape[1])
        check_factors(a, q, r)


def test_qr_many_is_checked():
    assert batchqr.qr_many([]) == []
    with pytest.raises(ValueError, match=r"a\[1\].*one matrix"):
        batchqr.qr_many([np.eye(2), np.zeros((1, 2, 2))])
    with pytest.raises(TypeError, match=r"a\[1\] is of type float32"):
        batchqr.qr_many([np.eye(2), np.eye(2, dtype=np.float32)])


def test_householder_product_is_checked():
    a, tau = batchqr.geqrf(random((3, 4, 6), "float64"))
    with pytest.raises(ValueError, match="at most as many columns as rows"):
        batchqr.householder_product(a, tau)
    with pytest.raises(ValueError, match="tau of shape"):
        batchqr.householder_product(a[..., :4], tau[:2])
    check_orthonormal(batchqr.householder_product(a[..., :4], tau[..., :2]))
