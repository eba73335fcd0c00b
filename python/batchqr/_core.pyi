# SPDX-License-Identifier: BSD-3-Clause
# What src/core.cpp defines, as nanobind.stubgen prints it.
import enum
from collections.abc import Callable, Sequence


class Error(RuntimeError):
    pass

class Type(enum.IntEnum):
    S = 0
    D = 1
    C = 2
    Z = 3

class Op(enum.IntEnum):
    GEQRF = 0
    ORGQR = 1
    ORMQR = 2
    QR = 3
    GEQR_R = 4
    GELS = 5
    GEQP3 = 7
    GESVD = 8
    SYEVD = 9
    GESVDR = 11
    GELSY = 12
    PINV = 13

class Side(enum.IntEnum):
    LEFT = 0
    RIGHT = 1

class Trans(enum.IntEnum):
    NO_TRANS = 0
    CONJ_TRANS = 2

class Backend(enum.IntEnum):
    AUTO = 0
    CPU = 1
    CUDA = 2

class Compute(enum.IntEnum):
    AUTO = 0
    NATIVE = 1
    EMULATED = 2
    HALF = 3

def version() -> str: ...
def host_address(array: object) -> int: ...

class Batch:
    def __init__(self, type: Type, count: int, m: int, n: int, k: int = 0, side: Side = Side.LEFT,
                 trans: Trans = Trans.NO_TRANS, a: tuple[int, int, int] = (0, 0, 0),
                 c: tuple[int, int, int] = (0, 0, 0), r: tuple[int, int, int] = (0, 0, 0), tau: int = 0,
                 norms: int = 0, iterations: int = 0, keep_a: bool = False, gram_schmidt: int = 0) -> None: ...

    @staticmethod
    def spectral(type: Type, count: int, m: int, n: int, k: int, a: tuple[int, int, int], c: tuple[int, int, int],
                 u: tuple[int, int, int], v: tuple[int, int, int], tau: int, s: int, jpvt: int, lower: bool, kmax: int, abstol: float,
                 reltol: float, oversampling: int, power_steps: int, seed: int, il: int = 0, iu: int = 0, vl: float = 0,
                 vu: float = 0) -> Batch: ...

    @staticmethod
    def of_sizes(type: Type, m: Sequence[int], n: Sequence[int], a_ld: Sequence[int], c_ld: Sequence[int],
                 r_ld: Sequence[int]) -> Batch: ...

class Handle:
    def __init__(self, backend: Backend = Backend.AUTO, positive: bool = False, threads: int = 0,
                 tuning_file: str | None = None, compute: Compute = Compute.AUTO) -> None: ...

    def run(self, op: Op, batch: Batch, addresses: Sequence[int], stream: int,
            allocate: Callable[[int], tuple[object, int]] | None) -> None: ...

    @property
    def backend(self) -> Backend: ...

    def describe(self) -> str: ...

class Plan:
    def __init__(self, handle: Handle, op: Op, batch: Batch) -> None: ...

    def execute(self, handle: Handle, addresses: Sequence[int], stream: int, workspace: int,
                bytes: int) -> None: ...

    @property
    def workspace(self) -> int: ...

    @property
    def launches(self) -> int: ...

    def describe(self) -> str: ...
