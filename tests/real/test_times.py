# SPDX-License-Identifier: Apache-2.0
"""The command that tells what converted models cost to run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
from texts import model

TIMES = Path(__file__).with_name("times.py")


def test_the_command_prints_nodes_times_and_what_is_refused(tmp_path: Path) -> None:
    onnx.save(model("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }", 13), tmp_path / "s.onnx")
    onnx.save(model("(float[2] x) => (float[2] y) { y = Erf (x) }", 13), tmp_path / "e.onnx")
    files = [str(tmp_path / "s.onnx"), str(tmp_path / "e.onnx")]
    line = [sys.executable, str(TIMES), *files, "--to", "12", "--to", "8", "--seconds", "0.01"]
    line += ["--json", str(tmp_path / "rows.json")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["model"], row["target"], row["nodes_before"], row["nodes_after"]) for row in found] == [
        ("s.onnx", 12, 1, 3), ("s.onnx", 8, 1, 3), ("e.onnx", 12, 1, 1),
    ]  # fmt: skip
    assert all(row["before"] > 0 and row["after"] > 0 for row in found)
    lines = done.stdout.splitlines()
    assert "e.onnx, 13 to 8: refused, Erf" in lines
    assert lines[-1].startswith("to 11 and above: median ")
    assert "bars 1.02 and 1.15" in lines[-1]
