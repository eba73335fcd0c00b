#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""installed.py WAY BUILD SOURCE CC CXX: installs the build into a scratch directory, which is not the prefix that it was
configured for, and builds and runs programs against it in one of the ways below. CC and CXX are command lines, with
launchers such as ccache. Exits with 77, and says why, where this machine or this build lacks what the way needs."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile


class Skipped(Exception):
    pass


def need(program):
    if not shutil.which(program):
        raise Skipped(f"no {program} here (tools/setup ci installs it)")
    return program


def run(*command, **options):
    words = [str(word) for word in command]
    print("+", shlex.join(words), flush=True)
    subprocess.run(words, check=True, **options)


def programs(at, language):
    """The whole programs in a language that docs/calling.md quotes, each in a file."""
    page = (at.source / "docs/calling.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n((?:#include|program|import numpy).*?)^```$", page, flags=re.M | re.S)
    for number, text in enumerate(blocks):
        file = at.scratch / f"calling{number}.{dict(fortran='f90', python='py').get(language, language)}"
        file.write_text(text, encoding="utf-8")
        yield file


class Installed:
    """The installed library, and a directory to build in."""

    def __init__(self, build, source, cc, cxx, scratch):
        self.source, self.scratch = source, scratch
        self.cc, self.cxx = shlex.split(cc), shlex.split(cxx)
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch / "root")
        pkgconfig = next((scratch / "root").rglob("batchqr.pc")).parent
        for file in pkgconfig.glob("*.pc"):  # moved, as package managers move them
            text = file.read_text(encoding="utf-8")
            prefix = re.search("^prefix=(.*)$", text, flags=re.M).group(1)
            self.prefix = scratch / "root" / prefix.lstrip("/")
            file.write_text(text.replace(f"prefix={prefix}", f"prefix={self.prefix}", 1), encoding="utf-8")
        self.libdir = pkgconfig.parent
        for name, place in {"PKG_CONFIG_PATH": pkgconfig, "LD_LIBRARY_PATH": self.libdir}.items():
            os.environ[name] = f"{place}:{os.environ[name]}" if os.environ.get(name) else str(place)
        self.version = self.flags("--modversion")[0]
        self.use = ["--cflags", "--libs"] + ([] if self.has("libbatchqr.so") else ["--static"])

    def flags(self, *arguments, package="batchqr"):
        done = subprocess.run(["pkg-config", *arguments, package], check=True, capture_output=True, text=True)
        return shlex.split(done.stdout)

    def has(self, library):
        return (self.libdir / library).exists()

    def compile(self, *command):
        """Builds a program and runs it."""
        run(*command, "-o", self.scratch / "program")
        run(self.scratch / "program")


def c(at):
    """Through pkg-config, shared and static."""
    program = [*at.cc, "-std=c11", at.source / "examples/quickstart.c", *at.flags("--cflags")]
    if at.has("libbatchqr.so"):
        at.compile(*program, *at.flags("--libs"), "-lm")
    if at.has("libbatchqr.a"):
        needs = [flag for flag in at.flags("--static", "--libs") if flag != "-lbatchqr"]
        at.compile(*program, at.libdir / "libbatchqr.a", *needs, "-lm")
    for quoted in programs(at, "c"):
        at.compile(*at.cc, "-std=c11", quoted, *at.flags(*at.use))


def cxx(at, compiler=None):
    """The C header and batchqr.hpp, by each standard."""
    tests = [at.source / "tests/package" / name for name in ("user.cpp", "test_cpp.cpp")]
    for standard in "c++17", "c++20":
        for program in [*tests, *programs(at, "cpp")]:
            at.compile(*(compiler or at.cxx), f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", program,
                       *at.flags(*at.use))


def clang(at):
    cxx(at, [need("clang++")])


def project(at, description):
    """A directory with a project's description and the programs that it builds."""
    directory = at.scratch / "project"
    directory.mkdir()
    for file in f"tests/package/installed/{description}", "examples/quickstart.c", "tests/package/test_cpp.cpp":
        shutil.copy(at.source / file, directory)
    return directory


def cmake(at):
    build = at.scratch / "build"
    # Ninja is there wherever Meson is, make may not be.
    run(need("cmake"), "-G", "Ninja", "-S", project(at, "CMakeLists.txt"), "-B", build,
        f"-DCMAKE_PREFIX_PATH={at.prefix}", f"-DVERSION={at.version}")
    run("cmake", "--build", build)
    run("ctest", "--output-on-failure", cwd=build)


def meson(at):
    build = at.scratch / "build"
    if not at.has("libbatchqr.so"):
        raise Skipped("Meson would link OpenBLAS and gfortran's library statically, too")
    run("meson", "setup", build, project(at, "meson.build"))
    run("ninja", "-C", build)
    run("meson", "test", "-C", build)


def fortran(at):
    if not at.has("pkgconfig/batchqr-fortran.pc"):
        raise Skipped("the build has no Fortran module")
    for program in [at.source / "examples/quickstart.f90", *programs(at, "fortran")]:
        at.compile(need("gfortran"), program, *at.flags(*at.use, package="batchqr-fortran"),
                   "-J", at.scratch)


def python(at):
    package = next((at.scratch / "root").rglob("batchqr/__init__.py"), None)
    if not package:
        raise Skipped("the build has no Python package")
    os.environ["PYTHONPATH"] = str(package.parent.parent)
    environment = at.source / ".venv/bin/python3"  # tools/setup's, which the package is then built for
    interpreter = environment if environment.exists() else sys.executable
    if subprocess.run([interpreter, "-c", "import numpy"], check=False, capture_output=True).returncode:
        raise Skipped("no NumPy here (tools/setup ci installs it)")
    for program in programs(at, "python"):
        run(interpreter, program)


WAYS = {way.__name__: way for way in (c, cxx, clang, cmake, meson, fortran, python)}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        try:
            WAYS[sys.argv[1]](Installed(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4], sys.argv[5],
                                        pathlib.Path(name)))
        except Skipped as reason:
            print(f"skipped: {reason}")
            sys.exit(77)
