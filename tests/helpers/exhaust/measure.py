# SPDX-License-Identifier: Apache-2.0
"""Prints which lines and branches of adapters/ the tests of tests/adapters and the cases of a state file reach.

usage: python tests/helpers/exhaust/measure.py [--state FILE] [--no-rows]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import coverage

ROOT = Path(__file__).resolve().parents[3]
ADAPTERS = ROOT / "adapters"


def convert_cases(path: Path) -> int:
    """Converts the cases of a state file once more, without running them; returns how many."""
    import onnx_convert
    from exhaust.choices import again
    from exhaust.judging import made, stated_model
    from exhaust.run import Explorer, crossings, load

    seed = json.loads(path.read_text())["seed"]
    count = 0
    for crossing, walk in load(path, crossings(), seed).items():
        explorer = Explorer(crossing, seed)
        for _ in range(walk.tried):
            picked = explorer.next()
            if picked is None:
                break
            case, target = again(picked, lambda choices, crossing=crossing: made(crossing, choices))[0]
            model = stated_model(case, target)
            if model is None:
                continue
            try:
                there = onnx_convert.convert(model, to=target, **case.options).model
                if case.returns:
                    onnx_convert.convert(there, to=case.opset, **case.options)
            except onnx_convert.OnnxConvertError:
                pass
            count += 1
    return count


def told(measured: coverage.Coverage) -> str:
    """Returns the figures, and what is not reached, file by file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        measured.json_report(outfile=str(file), ignore_errors=True)
        report: dict[str, Any] = json.loads(file.read_text())
    lines = []
    for name, data in sorted(report["files"].items()):
        lines += [f"{name}:{line}: not reached" for line in data["missing_lines"]]
        lines += [f"{name}:{one}: never goes to {other if other > 0 else 'the end'}"
                  for one, other in data["missing_branches"] if one not in data["missing_lines"]
                  and other not in data["missing_lines"]]  # fmt: skip
    total = report["totals"]
    lines.append(
        f"lines {total['covered_lines']} of {total['num_statements']}"
        f" ({100 * total['covered_lines'] / total['num_statements']:.2f} %),"
        f" branches {total['covered_branches']} of {total['num_branches']}"
        f" ({100 * total['covered_branches'] / total['num_branches']:.2f} %) of adapters/"
    )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--state", type=Path, metavar="FILE", help="the cases that were tried, as run.py wrote it")
    parser.add_argument("--no-rows", action="store_true", help="without the tests of tests/adapters")
    asked = parser.parse_args(arguments)
    # By the path of the files: installed in place, the modules are found through links to them.
    measured = coverage.Coverage(
        data_file=None,
        config_file=False,
        branch=True,
        include=[f"{ADAPTERS}/*"],
        omit=[f"{ADAPTERS}/decompose/scripts/*"],
    )
    measured.exclude("if TYPE_CHECKING:")
    measured.start()
    try:
        if not asked.no_rows:
            import pytest

            pytest.main(
                ["-q", "-p", "no:cacheprovider", "-m", "", "--rootdir", str(ROOT), str(ROOT / "tests" / "adapters")]
            )
        if asked.state:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sys.stdout.write(f"{convert_cases(asked.state)} cases converted\n")
    finally:
        measured.stop()
    sys.stdout.write(f"{told(measured)}\n")
    return 0


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    sys.exit(main())
