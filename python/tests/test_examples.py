# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/python, with little to do."""
from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def run(monkeypatch, capsys, name, *arguments):
    monkeypatch.setattr("sys.argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_moving_least_squares(monkeypatch, capsys):
    out = run(monkeypatch, capsys, "moving_least_squares.py", "--points", "600")
    assert "600 fits of 20 x 6" in out
    assert float(out.split("error of the function ")[1].split(",")[0]) < 0.1


def test_compare(monkeypatch, capsys):
    out = run(monkeypatch, capsys, "compare.py", "--members", "2")
    assert len(out.splitlines()) == 12


@pytest.mark.skipif(not importlib.util.find_spec("gpytorch"), reason="GPyTorch is not installed")
def test_gaussian_process(monkeypatch, capsys):
    out = run(monkeypatch, capsys, "gaussian_process.py", "--processes", "4", "--points", "64", "--steps", "3")
    losses = [float(line.split("loss ")[1].split()[0]) for line in out.splitlines() if "loss" in line]
    assert len(losses) == 2 and abs(losses[0] - losses[1]) < 0.01 * abs(losses[0])
