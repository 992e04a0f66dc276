# SPDX-License-Identifier: Apache-2.0
"""Carries the published cases to other opsets and writes the verdicts.

See `python tests/helpers/conformance/run.py --help`.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # a script's own folder is on the path, its parent is not
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import onnx
import onnxruntime

from conformance import corpus, results, workers
from conformance.converters import CONVERTERS
from conformance.judge import targets_for


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if a result is wrong or illegal, or the converter crashed."""
    asked = _parser().parse_args(arguments)
    cases = corpus.collect(wheels=not asked.generated)
    if asked.only:
        cases = [case for case in cases if set(asked.only) & set(case.operators)]
    if asked.case:
        cases = [case for case in cases if asked.case in case.id]
    if asked.sample:
        cases = corpus.sample(cases, asked.sample, asked.seed)
    tasks = [(case, targets_for(case, direction=asked.direction, one_step=asked.one_step)) for case in cases]
    if asked.target:
        tasks = [(case, [asked.target]) for case in cases if case.opset != asked.target]
    order = {case.id: index for index, case in enumerate(cases)}
    convert = partial(CONVERTERS[asked.converter], options=_options(asked.options))
    started = time.monotonic()
    records = []
    total = sum(len(targets) for _, targets in tasks)
    for record in workers.run(tasks, convert, asked.jobs):
        records.append(record)
        if sys.stderr.isatty() and len(records) % 100 == 0:
            sys.stderr.write(f"\r{len(records)}/{total}")
    records.sort(key=lambda record: (order[record["case"]], record["target"]))
    header = {key: value for key, value in vars(asked).items() if key not in ("out", "jobs")}
    header |= {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__, "cases": len(cases)}
    if asked.out:
        results.write(asked.out, header, records)
    took = f"{len(cases)} cases, {len(records)} targets, {time.monotonic() - started:.0f} s"
    sys.stdout.write(f"{results.summary(records)}\n\n{took}\n")
    return int(any(record["verdict"] in results.BAD for record in records))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generated", action="store_true", help="only what the installed onnx has; no wheels")
    parser.add_argument("--sample", type=int, metavar="N", help="N cases, the same for the same seed")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--only", action="append", metavar="OP", help="cases with this operator; may be repeated")
    parser.add_argument("--case", metavar="TEXT", help="cases whose id contains this")
    parser.add_argument("--target", type=int, metavar="OPSET", help="this target instead of the usual ones")
    parser.add_argument("--direction", choices=("up", "down"))
    parser.add_argument("--one-step", action="store_true", help="only the neighbouring opsets")
    parser.add_argument("--options", default="", metavar="K=V,...", help="for convert: types=cast,allow=conditional")
    parser.add_argument("--converter", choices=sorted(CONVERTERS), default="onnx-convert")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the verdicts go, as JSON lines")
    return parser


def _options(text: str) -> dict[str, Any]:
    words = {"true": True, "false": False}
    pairs = (part.split("=", 1) for part in text.split(",") if part)
    return {key: words.get(value, value) for key, value in pairs}


if __name__ == "__main__":
    sys.exit(main())
