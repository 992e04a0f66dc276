# SPDX-License-Identifier: Apache-2.0
"""The benchmark runs, at a size at which its figures mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from the kernel of Linux")


@LINUX
def test_no_weight_of_a_model_in_memory_is_copied() -> None:
    """Not even to be counted: a message that is asked for its size serialises itself."""
    workloads = Path(__file__).with_name("workloads.py")
    command = [sys.executable, str(workloads), "in_place", "200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout)
    assert found["model"] > 190e6
    assert found["extra"] < 50e6


@LINUX
@pytest.mark.thorough
def test_smoke(tmp_path: Path) -> None:
    bench = Path(__file__).with_name("bench.py")
    command = [sys.executable, str(bench), "--size", "smoke", "--cpp", "--json", str(tmp_path / "rows.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    names = [row["name"] for row in rows]
    for part in ("8 nodes", "--help", "none rewritten", "Softmax rewritten", "in place", "one file", "external data"):
        assert any(part in name for name in names), part
    assert all(row["value"] > 0 for row in rows if row["unit"] == "x")
    assert {row["verdict"] for row in rows} <= {"ok", "over"}
    assert len(done.stdout.splitlines()) == len(rows) + 1


@LINUX
@pytest.mark.thorough
def test_many_models(tmp_path: Path) -> None:
    many = Path(__file__).with_name("many.py")
    sizes = ["--models", "4", "--big", "2", "--megabytes", "2", "--rounds", "4"]
    command = [sys.executable, str(many), *sizes, "--json", str(tmp_path / "rows.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert len(rows) == 5 and all(row["value"] > 0 for row in rows)
    assert len(done.stdout.splitlines()) == len(rows) + 1
