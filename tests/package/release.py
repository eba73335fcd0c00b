#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""release.py SOURCE OPTION...: the release archive of HEAD, made twice and built with Meson's options in two places,
gives the same bytes; installed with DESTDIR it stays in its prefix and names no directory of the build; its bill of
materials names what the library loads. Exits with 77 where SOURCE is no clone."""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

SOURCE, OPTIONS = pathlib.Path(sys.argv[1]), sys.argv[2:]
PREFIX = "/opt/batchqr"


def run(*command):
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def release(commit, directory):
    """Archive, build and installation in a directory: {what: bytes}."""
    run(SOURCE / "packaging/release", commit, directory)
    archive, = directory.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(directory)
    source = directory / archive.name.removesuffix(".tar.gz")
    build = directory / "build"
    run("meson", "setup", build, source, f"--prefix={PREFIX}", "--libdir=lib", "-Dtests=disabled", "-Dbench=disabled",
        "-Dexamples=disabled", "-Ddocs=disabled", *OPTIONS)
    run("ninja", "-C", build, "-j2")
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", directory / "root")
    files = {path.relative_to(directory): path.read_bytes() for path in (directory / "root").rglob("*") if path.is_file()}
    files["bill"] = run(sys.executable, source / "packaging/sbom.py", build / "src/libbatchqr.so", build).encode()
    return files | {archive.name: archive.read_bytes()}


def check_bill(bill, library):
    assert (bill["bomFormat"], bill["specVersion"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "1.5", "batchqr")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library)))
    dynamic = {part["name"] for part in bill["components"] if part["properties"][0]["value"] == "dynamic"}
    assert dynamic == needed and any("openblas" in name for name in needed), (dynamic, needed)
    assert bill["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in bill["components"]]


if not (SOURCE / ".git").exists():
    print("skipped: this is no clone with git's history")
    sys.exit(77)
with tempfile.TemporaryDirectory() as scratch:
    first, second = pathlib.Path(scratch) / "first", pathlib.Path(scratch) / "somewhere/else"
    head = run("git", "-C", SOURCE, "rev-parse", "HEAD").strip()
    one, two = release(head, first), release(head, second)
    assert sorted(map(str, one)) == sorted(map(str, two))
    different = [str(name) for name in one if one[name] != two[name]]
    assert not different, different
    outside = [str(name) for name in one if str(name).startswith("root") and not str(name).startswith(f"root{PREFIX}/")]
    assert not outside, outside
    named = [str(name) for name, content in one.items() if scratch.encode() in content]
    assert not named, named
    check_bill(json.loads(one["bill"]), first / f"root{PREFIX}/lib/libbatchqr.so")
    print(*sorted(map(str, one)), sep="\n")
