#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""recipes.py SOURCE: reads the recipes of Spack and conda, with and without CUDA, and configures the CPU backend by what
they give to Meson. Neither is needed: words of Spack's are stood in for, and conda's recipe is rendered as conda does it.
Exits with 77, and says why, where Jinja or YAML are missing."""
import importlib.util
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import types

try:
    import jinja2
    import yaml
except ImportError as error:
    print(f"skipped: no {error.name} here (tools/setup ci installs it)")
    sys.exit(77)

SOURCE = pathlib.Path(sys.argv[1])
NUMBERS = re.findall(r"#define BATCHQR_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)",
                     (SOURCE / "include/batchqr/version.h").read_text(encoding="utf-8"))


# --- Spack


class Spec:
    """+name, name=value, and the packages that it depends on."""

    def __init__(self, said, values, packages):
        self.said, self.packages = said, packages
        self.variants = {name: types.SimpleNamespace(value=value) for name, value in values.items()}

    def __contains__(self, what):
        return what in self.said

    def __getitem__(self, package):
        return types.SimpleNamespace(prefix=self.packages[package])


def read_spack():
    """The recipe's class, and what it said by each of Spack's directives: [(arguments, options)]."""
    said = {name: [] for name in ("license", "version", "variant", "depends_on", "conflicts")}
    words = types.ModuleType("spack.package")
    words.MesonPackage, words.CudaPackage = type("MesonPackage", (), {}), type("CudaPackage", (), {})
    for name, calls in said.items():
        setattr(words, name, lambda *arguments, calls=calls, **options: calls.append((arguments, options)))
    sys.modules |= {"spack": types.ModuleType("spack"), "spack.package": words}
    recipe = importlib.util.spec_from_file_location("package", SOURCE / "packaging/spack/packages/batchqr/package.py")
    module = importlib.util.module_from_spec(recipe)
    recipe.loader.exec_module(module)
    return module.Batchqr, said


def spack_args(package, *said, **values):
    made = package()
    made.spec = Spec(said, values, {"cuda": "/opt/cuda"})
    return made.meson_args()


def check_spack():
    repository = yaml.safe_load((SOURCE / "packaging/spack/repo.yaml").read_text(encoding="utf-8"))
    assert repository["repo"]["namespace"] == "batchqr", repository
    package, said = read_spack()
    assert package.__doc__ and said["license"] == [(("BSD-3-Clause",), {})] and said["version"]
    variants = {arguments[0] for arguments, _ in said["variant"]} | {"cuda"}  # CudaPackage's
    for _, options in said["depends_on"] + said["conflicts"]:
        assert set(re.findall(r"[+~](\w+)", options.get("when", ""))) <= variants, options
    needed = {re.match(r"\w+", arguments[0]).group() for arguments, _ in said["depends_on"]}
    assert {"c", "meson", "pkgconfig", "openblas", "cuda"} <= needed, needed
    on_gpu = spack_args(package, "+cuda", "+nccl", cuda_arch=("80", "90"), types=("s", "z"))
    wanted = {"-Dcuda-arch=80,90a", "-Dcuda-root=/opt/cuda", "-Dtypes=s,z", "-Ddefault_library=static", "-Dcuda=enabled",
              "-Dnccl=enabled", "-Dmpi=disabled", "-Dadapters=disabled"}
    assert wanted <= set(on_gpu), on_gpu
    return on_gpu, spack_args(package, "+shared", types=tuple("sdcz"))


# --- conda


def read_conda(cuda):
    def load_file_regex(load_file, regex_pattern, from_recipe_dir):
        assert not from_recipe_dir
        return re.search(regex_pattern, (SOURCE / load_file).read_text(encoding="utf-8"))

    text = (SOURCE / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
    text = re.sub(r"^.*# \[not linux\]\n", "", text, flags=re.M)
    rendered = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(
        load_file_regex=load_file_regex, environ={"CUDA": cuda}, compiler=lambda language: f"compiler-{language}",
        PKG_BUILDNUM=0)
    return yaml.safe_load(rendered)


def check_conda(cuda):
    """What the recipe gives to Meson; its other commands have to be there."""
    recipe = read_conda(cuda)
    assert recipe["package"] == {"name": "batchqr", "version": ".".join(NUMBERS)}, recipe["package"]
    assert (SOURCE / "packaging/conda" / recipe["source"]["path"] / recipe["about"]["license_file"]).exists()
    assert all((SOURCE / file).exists() for file in recipe["test"]["source_files"])
    assert ("compiler-cuda" in recipe["requirements"]["build"]) == (cuda == "yes"), recipe["requirements"]
    script = [shlex.split(command) for command in recipe["build"]["script"]]
    assert [words[:2] for words in script] == [["meson", "setup"], ["meson", "compile"], ["meson", "install"]], script
    assert script[1][-1] == script[2][-1] == script[0][2], script
    return [word for word in script[0] if word.startswith("-")]


# --- both


def check_options(args, known):
    for arg in args:
        name, value = re.fullmatch(r"(?:-D|--)([\w-]+)=(.*)", arg).groups()
        assert name in known, f"Meson has no option {name}"
        choices = known[name].get("choices")
        assert not choices or all(part in choices for part in value.split(",")), arg


def main():
    said = subprocess.run(["meson", "introspect", "--buildoptions", SOURCE / "meson.build"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    known = {option["name"]: option for option in json.loads(said)}
    spack_gpu, spack_cpu = check_spack()
    conda_gpu, conda_cpu = check_conda("yes"), check_conda("no")
    for args in spack_gpu, spack_cpu, conda_gpu, conda_cpu:
        check_options(args, known)
    for args in spack_cpu, conda_cpu:
        with tempfile.TemporaryDirectory() as scratch:
            words = [word.replace("$PREFIX", "/opt/batchqr") for word in args]
            print("meson setup", *words, flush=True)
            subprocess.run(["meson", "setup", scratch, SOURCE, *words], check=True,
                           stdout=subprocess.DEVNULL)


main()
