# SPDX-License-Identifier: BSD-3-Clause
"""meson-python, told that extensions for Python 3.11 are ordinary ones: its stable ABI lacks what nanobind needs."""
import sys
from typing import Any

import mesonpy
from mesonpy import (  # noqa: F401 (what a build backend is)
    build_sdist, get_requires_for_build_editable, get_requires_for_build_sdist, get_requires_for_build_wheel)

Settings = dict[str, Any] | None


def _settings(given: Settings) -> Settings:
    settings = dict(given or {})
    if sys.version_info < (3, 12):
        setup = settings.get("setup-args", [])
        settings["setup-args"] = ([setup] if isinstance(setup, str) else setup) + ["-Dpython.allow_limited_api=false"]
    return settings


def build_wheel(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    return mesonpy.build_wheel(directory, _settings(settings), metadata)


def build_editable(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    return mesonpy.build_editable(directory, _settings(settings), metadata)
