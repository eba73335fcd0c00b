#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sbom.py LIBRARY BUILD: a software bill of materials (CycloneDX 1.5, JSON) of the shared library LIBRARY, which the
build directory BUILD made: the libraries that it loads, and those that it has taken up. Two runs write the same."""
import json
import os
import pathlib
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def loaded(library):
    """{name: path} of the libraries that it names itself; the path is None where this machine has none."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", library))
    paths = dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", library), flags=re.M))
    return {name: paths.get(name) for name in sorted(needed)}


def taken_up(build, library):
    """{name: path} of the static libraries from outside of the build that are on its linker's command line."""
    target = os.path.relpath(os.path.realpath(library), os.path.realpath(build))
    command = output("ninja", "-C", build, "-t", "commands", target).splitlines()[-1]
    archives = [pathlib.Path(word) for word in command.split() if word.endswith(".a") and word.startswith("/")]
    return {path.name: str(path) for path in sorted(archives)}


def version_of(path):
    """From Debian's packages, or else from the name of the file that the path leads to; None if neither says."""
    if not path:
        return None
    real = os.path.realpath(path)
    for file in path, real, real.removeprefix("/usr"):
        owner = subprocess.run(["dpkg-query", "-S", file], check=False, capture_output=True, text=True).stdout
        if owner:
            return output("dpkg-query", "-W", "-f=${Version}", owner.split(": ")[0].split(",")[0])
    number = re.search(r"[0-9]+(\.[0-9]+)+", real.rsplit("/lib", 1)[0] if real.endswith(".a") else os.path.basename(real))
    return number.group() if number else None


def component(name, path, how):
    found = {"type": "library", "bom-ref": name, "name": name, "scope": "required",
             "properties": [{"name": "batchqr:linked", "value": how}]}
    version = version_of(path)
    return found | {"version": version} if version else found


def bom(library, build):
    options = {option["name"]: option["value"] for option in json.loads(output("meson", "introspect", build, "--buildoptions"))}
    version = json.loads(output("meson", "introspect", build, "--projectinfo"))["version"]
    components = [component(name, path, "dynamic") for name, path in loaded(library).items()]
    components += [component(name, path, "static") for name, path in taken_up(build, library).items()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "library", "bom-ref": "batchqr", "name": "batchqr", "version": version,
            "licenses": [{"license": {"id": "BSD-3-Clause"}}],
            "properties": [{"name": f"batchqr:{name}", "value": str(options[name])} for name in ("cuda", "cuda-arch", "types")],
        }},
        "components": components,
        "dependencies": [{"ref": "batchqr", "dependsOn": [found["bom-ref"] for found in components]}],
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(json.dumps(bom(*sys.argv[1:]), indent=2))
