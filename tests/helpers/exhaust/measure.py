# SPDX-License-Identifier: Apache-2.0
"""Prints which lines and branches of adapters/ the tests of tests/adapters and the cases of a state file reach.

usage: python tests/helpers/exhaust/measure.py [--state FILE] [--no-rows]

A line that nothing reaches, or that always goes the same way, says why: `# unreached: why`; on the first line of an
`if` or a function that is said of all of it. With a reason although it is reached, or where more than UNEXPLAINED have
none, the command fails.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
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


UNEXPLAINED = 130  # lines and branches that only the cases of a long search reach, or nothing yet; it may only shrink
REASON = re.compile(r"# unreached: \w")


def excused(text: str) -> dict[int, range]:
    """Returns for each line with a reason the lines that it excuses: itself, and the block that it begins."""
    stated = [number for number, line in enumerate(text.splitlines(), 1) if REASON.search(line)]
    lines = {number: range(number, number + 1) for number in stated}
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and node.lineno in lines:
            lines[node.lineno] = range(node.lineno, body[-1].end_lineno + 1)
    return lines


def unexcused(name: str, text: str, lines: list[int], branches: list[tuple[int, int]]) -> list[str]:
    """Returns what is wrong with a file of which these lines, and branches from line to line, were not reached."""
    reasons = excused(text)
    good = {line for block in reasons.values() for line in block}
    wrong = [f"{name}:{line}: not reached" for line in lines if line not in good]
    wrong += [f"{name}:{one}: never goes to {other if other > 0 else 'the end'}" for one, other in branches
              if one not in lines and other not in lines and one not in good]  # fmt: skip
    missing = {*lines, *(one for one, _ in branches)}
    wrong += [f"{name}:{line}: is reached, and says why not" for line, block in reasons.items()
              if not missing & set(block)]  # fmt: skip
    return wrong


def told(measured: coverage.Coverage) -> tuple[str, bool]:
    """Returns the figures, with what is not reached and does not say why, file by file; and whether that is little."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        measured.json_report(outfile=str(file), ignore_errors=True)
        report: dict[str, Any] = json.loads(file.read_text())
    lines = []
    for name, data in sorted(report["files"].items()):
        text = (ROOT / name).read_text(encoding="utf-8")
        lines += unexcused(name, text, data["missing_lines"], [(a, b) for a, b in data["missing_branches"]])
    total = report["totals"]
    good = len(lines) <= UNEXPLAINED and not any("says why not" in line for line in lines)
    lines.append(
        f"lines {total['covered_lines']} of {total['num_statements']}"
        f" ({100 * total['covered_lines'] / total['num_statements']:.2f} %),"
        f" branches {total['covered_branches']} of {total['num_branches']}"
        f" ({100 * total['covered_branches'] / total['num_branches']:.2f} %) of adapters/"
    )
    return "\n".join(lines), good


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if too much is not reached and does not say why."""
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
    text, good = told(measured)
    sys.stdout.write(f"{text}\n")
    return int(not good)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    sys.exit(main())
