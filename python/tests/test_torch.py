# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import importlib.util
import shutil

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import batchqr  # noqa: E402
import batchqr.torch  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))]
REAL_AND_COMPLEX = [torch.float64, torch.complex128]


@pytest.fixture(params=DEVICES)
def device(request):
    torch.manual_seed(0)
    return request.param


@pytest.fixture
def calls(monkeypatch):
    """Counts the calls of the library."""
    counted = []
    execute = batchqr._operations.execute

    def counting(framework, like, handle, op, *rest):
        counted.append(op)
        execute(framework, like, handle, op, *rest)

    monkeypatch.setattr(batchqr._operations, "execute", counting)
    return counted


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (3, 2, 6, 6), (0, 4, 2), (2, 0, 3)])
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_is_ours(device, calls, dtype, shape, mode):
    a = torch.randn(shape, dtype=dtype, device=device)
    expected = torch.linalg.qr(a, mode)
    assert not calls
    with batchqr.torch.use(cpu=True):
        got = torch.linalg.qr(a, mode)
    assert calls
    for x, y in zip(got, expected):
        assert x.shape == y.shape and x.dtype == y.dtype and (not x.numel() or x.stride() == y.stride())
    if mode != "r":
        torch.testing.assert_close(got.Q @ got.R, a)
    calls.clear()
    torch.linalg.qr(a, mode)
    assert not calls


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (3, 2, 6, 6), (0, 4, 2)])
@pytest.mark.parametrize("full", [False, True])
def test_svd_is_ours(device, calls, dtype, shape, full):
    a = torch.randn(shape, dtype=dtype, device=device)
    expected = torch.linalg.svd(a, full)
    with batchqr.torch.use(cpu=True):
        u, s, vh = torch.linalg.svd(a, full)
        values = torch.linalg.svdvals(a)
    assert calls
    assert u.shape == expected.U.shape and vh.shape == expected.Vh.shape
    torch.testing.assert_close(s, expected.S)
    torch.testing.assert_close(values, expected.S)
    k = s.shape[-1]
    torch.testing.assert_close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
    torch.testing.assert_close(u.mH @ u, torch.eye(u.shape[-1], dtype=dtype, device=device).expand_as(u.mH @ u))
    torch.testing.assert_close(vh @ vh.mH, torch.eye(vh.shape[-2], dtype=dtype, device=device).expand_as(vh @ vh.mH))


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh_is_ours(device, calls, dtype, uplo):
    a = torch.randn(3, 7, 7, dtype=dtype, device=device)
    a = a + a.mH
    expected = torch.linalg.eigvalsh(a)
    with batchqr.torch.use(cpu=True):
        w, v = torch.linalg.eigh(a, uplo)
        values = torch.linalg.eigvalsh(a, uplo)
    assert len(calls) == 2
    torch.testing.assert_close(w, expected)
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(v * w[:, None] @ v.mH, a)


def test_derivatives_of_singular_values_and_eigenvalues(device, calls):
    a = torch.randn(2, 4, 3, dtype=torch.float64, device=device, requires_grad=True)
    with batchqr.torch.use(cpu=True):
        assert torch.autograd.gradcheck(torch.linalg.svdvals, a)
        assert torch.autograd.gradcheck(lambda x: torch.linalg.eigvalsh(x.mT @ x), a)
    assert calls


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)
def test_reflectors_are_ours(device, calls, dtype):
    a, c = torch.randn(3, 6, 4, dtype=dtype, device=device), torch.randn(3, 6, 2, dtype=dtype, device=device)
    with batchqr.torch.use(cpu=True):
        factored, tau = torch.geqrf(a)
        q = torch.linalg.householder_product(factored, tau)
        applied = torch.ormqr(factored, tau, c, True, True)
    assert len(calls) == 3
    torch.testing.assert_close(q @ factored[:, :4].triu(), a)
    torch.testing.assert_close(applied[:, :4], q.mH @ c)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)
@pytest.mark.parametrize("shape", [(2, 4, 3), (3, 3), (3, 5)])
def test_derivatives_of_qr(device, dtype, shape):
    a = torch.randn(shape, dtype=dtype, device=device, requires_grad=True)

    def product(a):
        q, r = torch.linalg.qr(a)
        return (q @ q.mH).real.square().sum() + r.abs().square()[..., 0, :].sum()

    with batchqr.torch.use(cpu=True):
        assert torch.autograd.gradcheck(product, a)
        assert torch.autograd.gradgradcheck(product, a)


def test_vmap_is_one_call(device, calls):
    a = torch.randn(5, 2, 4, 3, dtype=torch.float64, device=device)
    with batchqr.torch.use(cpu=True):
        q, r = torch.vmap(torch.vmap(torch.linalg.qr))(a)
    assert len(calls) == 1
    torch.testing.assert_close(q @ r, a)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 3, 3), (2, 3, 4)])
def test_lstsq(device, dtype, adjoint, shape):
    a = torch.randn(shape, dtype=dtype, device=device, requires_grad=True)
    op = a.mH if adjoint else a
    b = torch.randn(op.shape[-2], 2, dtype=dtype, device=device, requires_grad=True)

    def solve(a, b):
        return batchqr.torch.lstsq(a, b, adjoint=adjoint)

    torch.testing.assert_close(solve(a, b), torch.linalg.pinv(op) @ b)
    assert torch.autograd.gradcheck(solve, (a, b))
    assert torch.autograd.gradgradcheck(solve, (a, b))


def test_lstsq_under_vmap(device, calls):
    a = torch.randn(5, 4, 3, dtype=torch.float64, device=device)
    b = torch.randn(4, 2, 5, dtype=torch.float64, device=device)
    x = torch.vmap(batchqr.torch.lstsq, in_dims=(0, 2))(a, b)
    assert len(calls) == 1
    torch.testing.assert_close(x, torch.linalg.lstsq(a, b.movedim(2, 0)).solution)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("shape", [(2, 5, 4), (4, 4), (2, 4, 5)])
@pytest.mark.parametrize("rcond", [0, 1e-8])
def test_lstsq_of_any_rank(device, dtype, adjoint, shape, rcond):
    """A of rank 2 stays so where its factors vary."""
    *members, m, n = shape
    left, right = torch.randn(*members, m, 2, dtype=dtype, device=device), torch.randn(2, n, dtype=dtype, device=device)
    b = torch.randn(n if adjoint else m, 2, dtype=dtype, device=device, requires_grad=True)

    def solve(left, right, b):
        return batchqr.torch.lstsq(left @ right, b, adjoint=adjoint, rcond=rcond)

    op = (left @ right).mH if adjoint else left @ right
    torch.testing.assert_close(solve(left, right, b), torch.linalg.pinv(op, rtol=1e-8) @ b)
    arguments = left.requires_grad_(), right.requires_grad_(), b
    assert torch.autograd.gradcheck(solve, arguments)
    if rcond:
        assert torch.autograd.gradgradcheck(solve, arguments)


def test_lstsq_of_any_rank_under_vmap(device, calls):
    a = torch.randn(5, 4, 3, dtype=torch.float64, device=device)
    a[..., 2] = a[..., 0]
    b = torch.randn(4, 2, 5, dtype=torch.float64, device=device)
    x = torch.vmap(lambda a, b: batchqr.torch.lstsq(a, b, rcond=1e-10), in_dims=(0, 2))(a, b)
    assert len(calls) == 1
    torch.testing.assert_close(x, torch.linalg.pinv(a, rtol=1e-10) @ b.movedim(2, 0))
    with pytest.raises(ValueError, match="rcond = -1"):
        batchqr.torch.lstsq(a, b, rcond=-1)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)
@pytest.mark.parametrize("shape", [(20, 9), (3, 9, 20), (3, 3)])
def test_svd_lowrank_is_ours(device, calls, dtype, shape):
    *members, m, n = shape
    q = 4
    a = torch.randn(*members, m, 3, dtype=dtype, device=device) @ torch.randn(3, n, dtype=dtype, device=device)
    theirs = torch.svd_lowrank
    with batchqr.torch.use(cpu=True):
        u, s, v = torch.svd_lowrank(a, q, niter=1)
        assert len(calls) == 1
        torch.manual_seed(1)
        first = torch.svd_lowrank(a, q)
        torch.manual_seed(1)
        assert all(torch.equal(x, y) for x, y in zip(first, torch.svd_lowrank(a, q)))
        calls.clear()
        assert torch.autograd.gradcheck(lambda x: torch.svd_lowrank(x @ x.mH, 3)[1], a.requires_grad_())
        assert len(calls) > 1  # PyTorch's, of our QR and SVD
        mean = a.detach().mean(-2, keepdim=True)
        centred = torch.svd_lowrank(a.detach(), q, M=mean)[1]
    assert torch.svd_lowrank is theirs
    a = a.detach()
    for x, y in zip((u, s, v), theirs(a, q)):
        assert x.shape == y.shape and x.dtype == y.dtype
    torch.testing.assert_close((u * s[..., None, :]) @ v.mH, a)
    torch.testing.assert_close(s, torch.linalg.svdvals(a)[..., :q])
    torch.testing.assert_close(centred, torch.linalg.svdvals(a - mean)[..., :q])


def test_a_tensor_that_requires_grad_is_refused(device):
    with pytest.raises(RuntimeError, match="requires grad"):
        batchqr.qr(torch.eye(3, device=device, requires_grad=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_stream_and_graph():
    a = torch.randn(100, 8, 8, device="cuda", dtype=torch.float64)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with batchqr.torch.use():
        with torch.cuda.stream(stream):
            q, r = torch.linalg.qr(a)
        stream.synchronize()
        torch.testing.assert_close(q @ r, a)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            q, r = torch.linalg.qr(a)
    a.normal_()
    graph.replay()
    torch.testing.assert_close(q @ r, a)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend):
    if backend == "inductor" and not (importlib.util.find_spec("triton") and (shutil.which("cc") or shutil.which("gcc"))):
        pytest.skip("Inductor wants Triton and a C compiler")
    a = torch.randn(10, 8, 8, device="cuda", dtype=torch.float64)
    with batchqr.torch.use():
        q, r = torch.compile(lambda a: torch.linalg.qr(a + 0), backend=backend)(a)
    torch.testing.assert_close(q @ r, a)
