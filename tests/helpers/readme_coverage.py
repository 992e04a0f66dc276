# SPDX-License-Identifier: Apache-2.0
"""Writes the coverage in adapters/README.md anew, from the table of decisions; use the newest onnx for it.

    python tests/helpers/readme_coverage.py
"""

from __future__ import annotations

import re
from pathlib import Path

from onnx_convert.cli import operator_tables
from onnx_convert.reference.operators import coverage

README = Path(__file__).parents[2] / "adapters" / "README.md"
BEGIN, END = "<!-- coverage -->\n", "<!-- end of coverage -->"


def up_to_date(readme: str) -> str:
    """Returns adapters/README.md with the coverage as it is now."""
    before, _, rest = readme.partition(BEGIN)
    return before + BEGIN + "\n" + operator_tables.coverage_markdown(coverage()) + "\n" + END + rest.partition(END)[2]


def documented() -> int:
    """Returns the opset that the README tells of."""
    found = re.search(r"Up to ai\.onnx (\d+),", README.read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    README.write_text(up_to_date(README.read_text(encoding="utf-8")), encoding="utf-8")
