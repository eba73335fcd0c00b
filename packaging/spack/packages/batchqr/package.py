# SPDX-License-Identifier: BSD-3-Clause
"""Spack's recipe. In a clone: spack repo add packaging/spack && spack install batchqr +cuda cuda_arch=90"""
import pathlib

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cuda import CudaPackage
    from spack_repo.builtin.build_systems.meson import MesonPackage
except ImportError:  # Spack before 1.0 has them among the words above
    pass


class Batchqr(MesonPackage, CudaPackage):
    """QR factorization of batches of dense matrices, on NVIDIA GPUs and on the CPU."""

    # The clone that this recipe is in.
    git = pathlib.Path(__file__).resolve().parents[4].as_uri()

    license("BSD-3-Clause")
    version("main", branch="main")

    variant("shared", default=True, description="The shared library beside the static one")
    variant("types", default="s,d,c,z", values=("s", "d", "c", "z"), multi=True,
            description="Data types that GPU kernels are compiled for")
    variant("mpi", default=False, description="Communicators over MPI: libbatchqr_mpi")
    variant("nccl", default=False, when="+cuda", description="Communicators over NCCL: libbatchqr_nccl")
    variant("fortran", default=False, description="The Fortran module")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    # Its OpenMP build runs a call inside a parallel loop on one thread. It has LAPACKE inside.
    depends_on("openblas threads=openmp")
    depends_on("cuda@13:", when="+cuda")
    depends_on("mpi", when="+mpi")
    depends_on("nccl", when="+nccl")
    depends_on("fortran", type="build", when="+fortran")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPU's architecture: cuda_arch=90")

    def meson_args(self):
        # Nothing but what the variants name, whatever else is found.
        args = ["-Dauto_features=disabled", "-Ddefault_library=" + ("both" if "+shared" in self.spec else "static")]
        args += ["-D" + name + "=" + ("enabled" if "+" + name in self.spec else "disabled")
                 for name in ("cuda", "mpi", "nccl", "fortran")]
        # Libraries in the places of cuBLAS, cuSOLVER and KBLAS.
        args += ["-Dadapters=" + ("enabled" if "+shared" in self.spec else "disabled")]
        if "+cuda" in self.spec:
            # Hopper's matrix units are in 90a alone.
            archs = ["90a" if arch == "90" else arch for arch in self.spec.variants["cuda_arch"].value]
            args += ["-Dcuda-arch=" + ",".join(archs), "-Dcuda-root=" + self.spec["cuda"].prefix,
                     "-Dtypes=" + ",".join(t for t in "sdcz" if t in self.spec.variants["types"].value)]
        return args
