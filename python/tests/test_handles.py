# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import batchqr
from conftest import check_factors, random


def test_handle():
    handle = batchqr.Handle("cpu", positive=True, threads=1)
    assert handle.backend == "cpu" and "1 thread" in repr(handle)
    a = random((3, 5, 5), "float64")
    q, r = batchqr.qr(a, handle=handle)
    check_factors(a, q, r)
    assert (np.diagonal(r, axis1=1, axis2=2) >= 0).all()


def test_errors_have_the_librarys_text(tmp_path):
    with pytest.raises(ValueError, match="threads = -1"):
        batchqr.Handle("cpu", threads=-1)
    with pytest.raises(ValueError, match="one of auto, cpu, cuda"):
        batchqr.Handle("gpu")
    table = tmp_path / "table"
    table.write_text("nonsense\n")
    with pytest.raises(batchqr.Error, match="table:1"):
        batchqr.Handle("cpu", tuning_file=str(table))
    with pytest.raises(ValueError, match="made without"):
        batchqr.qr(np.eye(3), positive=True, handle=batchqr.Handle("cpu"))


def test_threads_share_handles():
    a = [random((50, 8 + i, 5), "float64", seed=i) for i in range(8)]
    results = [None] * len(a)
    handle = batchqr.Handle("cpu", threads=1)

    def work(i):
        for _ in range(20):
            results[i] = batchqr.qr(a[i], handle=handle if i % 2 else None)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, result in zip(a, results):
        check_factors(x, *result)


@pytest.mark.parametrize("order", ["by rows", "by columns"])
def test_plan(dtype, order):
    a = random((2, 3, 7, 4), dtype)
    if order == "by columns":
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    plan = batchqr.Plan("qr", a)
    check_factors(a, *plan(a))
    other = a[::-1].copy(order="K")
    check_factors(other, *plan(other))
    assert plan.launches >= 1 and "qr" in str(plan).lower()
    assert np.allclose(batchqr.Plan("r", a)(a), batchqr.qr(a, "r"), atol=1e-4)
    for wrong in (a[:1], a[..., :3], random(a.shape, "float32" if dtype != "float32" else "float64")):
        with pytest.raises(ValueError, match="differs"):
            plan(wrong)


def test_plan_of_geqrf(dtype):
    a = random((5, 7, 4), dtype)
    by_columns = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    plan = batchqr.Plan("geqrf", by_columns)
    factored, tau = plan(by_columns)
    assert factored is by_columns
    expected = batchqr.geqrf(a)
    assert np.array_equal(factored, expected.a) and np.array_equal(tau, expected.tau)
    with pytest.raises(ValueError, match="stored by columns"):
        batchqr.Plan("geqrf", a)
    by_columns.flags.writeable = False
    with pytest.raises(ValueError, match="cannot be written"):
        plan(by_columns)


def test_plan_takes_arrays_alone():
    with pytest.raises(TypeError, match="a is a list"):
        batchqr.Plan("qr", np.eye(2))([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="one of qr, r, geqrf"):
        batchqr.Plan("svd", np.eye(2))


def test_programs_end_without_a_word():
    """With handles, plans and what calls share left over."""
    program = """import batchqr, numpy as np
a = np.eye(3)
batchqr.qr(a)
plan = batchqr.Plan("qr", a, handle=batchqr.Handle("cpu"))"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_show_config(capsys):
    config = batchqr.show_config("dicts")
    assert config["version"] == batchqr.__version__ and "numpy" in config["frameworks"] and config["cpu"]
    assert batchqr.show_config() is None
    assert batchqr.__version__ in capsys.readouterr().out
