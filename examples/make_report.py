# SPDX-License-Identifier: Apache-2.0
"""Makes the page examples/report.html: an attention of opset 18 is brought down to opset 11, before and after.

python examples/make_report.py [FILE]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

ATTENTION = """
<ir_version: 8, opset_import: ["" : 18], producer_name: "example">
attention (float[2, 4, 24] tokens, bool[2, 4, 4] mask) => (float[2, 4, 8] mixed) {
  [split] query, key, value = Split <axis = 2, num_outputs = 3> (tokens)
  [turn] turned = Transpose <perm = [0, 2, 1]> (key)
  [score] scores = MatMul (query, turned)
  [low] low = Constant <value = float {-1e9}> ()
  [masked] kept = Where (mask, scores, low)
  [weigh] weights = Softmax <axis = 1> (kept)
  [mix] heads = MatMul (weights, value)
  [gate] mixed = HardSwish (heads)
}
"""


def make(path: Path) -> None:
    """Converts the model in a folder of its own, and keeps the report."""
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(onnx.parser.parse_model(ATTENTION), Path(folder) / "attention.onnx")
        line = "-m onnx_convert attention.onnx --to 11 --quiet --report report.html"
        subprocess.run([sys.executable, *line.split()], cwd=folder, check=True)  # noqa: S603 - our own command
        shutil.copyfile(Path(folder) / "report.html", path)


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("report.html")
    make(file)
    print(file)
