# SPDX-License-Identifier: BSD-3-Clause
"""Plans, for inner loops."""
from __future__ import annotations

from typing import Any, Literal

from . import _checks, _core, _operations
from ._frameworks import Jax, framework_of
from ._handles import Handle, handle_for
from ._operations import Problem
from ._routines import GeqrfResult, QRResult


class Plan:
    """What will be launched for arrays of one shape, type, device and storage: planned once, executed often, without
    a check of what is known and without an allocation.

    op      "qr", "r" or "geqrf"
    a       (..., m, n): an example of what the plan will be executed on; not read
    handle  instead of the one that calls without one share

    plan(a) returns what the function of that name returns, in arrays that belong to the plan and that the next call
    overwrites; "geqrf" works in a, which must be stored by columns. print(plan) shows what is launched."""

    def __init__(self, op: Literal["qr", "r", "geqrf"], a: Any, *, positive: bool = False,
                 handle: Handle | None = None) -> None:
        _checks.choice("op", op, "qr", "r", "geqrf")
        self._framework = framework = framework_of(a)
        if isinstance(framework, Jax):
            raise TypeError("Plan: not for JAX's arrays")
        a = framework.asarray(a)
        *members, m, n = _operations.matrices(a, "a")
        k = min(m, n)
        self.op = op
        self._problem: Problem
        self._result: Any
        if op == "geqrf":
            if not _operations.is_stored_by_columns(framework, a):
                raise ValueError("a must be stored by columns and writable: geqrf works in it")
            tau = framework.empty((*members, k), a)
            self._problem = _operations.geqrf(framework, a, tau, None)
            self._result = tau
        else:
            if not _operations.is_readable(framework, a):
                raise ValueError("a is stored in a way that the library cannot read: plan for a copy of it")
            r = framework.empty_matrices((*members, k, n), a)
            q = framework.empty_matrices((*members, m, k), a) if op == "qr" else None
            self._problem = _operations.qr(framework, a, q, r, None, keep_a=True)
            self._result = r if q is None else QRResult(q, r)
        self._handle = handle_for(framework, a, positive, handle)
        self._storage = self._storage_of(a)
        with framework.on_device(a):
            self._core = _core.Plan(self._handle._core, self._problem.op, self._problem.batch)
            allocate = framework.allocator(a) or _operations.host_allocator
            self._owner, self._workspace = allocate(self._core.workspace) if self._core.workspace else (None, 0)
        self._addresses = self._problem.addresses()

    def _storage_of(self, a: Any) -> tuple[Any, ...]:
        framework = self._framework
        return tuple(a.shape), framework.strides(a), a.dtype, framework.device(a)

    def __call__(self, a: Any) -> Any:
        """Executes the plan on a, on the framework's current stream."""
        framework = self._framework
        _operations.check_array(framework, a, "a")
        if self._storage_of(a) != self._storage:
            raise ValueError("a differs in shape, strides, type or device from what the plan was made for")
        if self.op == "geqrf" and not framework.is_writable(a):
            raise ValueError("a cannot be written to")
        with framework.on_device(a):
            self._addresses[0] = framework.address(a)
            self._core.execute(self._handle._core, self._addresses, framework.stream(a), self._workspace,
                               self._core.workspace)
        return GeqrfResult(a, self._result) if self.op == "geqrf" else self._result

    @property
    def workspace(self) -> int:
        """Bytes."""
        return self._core.workspace

    @property
    def launches(self) -> int:
        """Kernel launches of one execute (CPU: parallel loops)."""
        return self._core.launches

    def __str__(self) -> str:
        return self._core.describe().rstrip()

    def __repr__(self) -> str:
        return f"<batchqr.Plan of {self.op}: {self}>"
