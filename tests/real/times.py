# SPDX-License-Identifier: Apache-2.0
"""What converted models cost to run, beside their sources: nodes and run times in onnxruntime.

    python tests/real/times.py                            models of PyPI packages and of the onnx wheel; some minutes
    python tests/real/times.py --only silero              those whose name has this word
    python tests/real/times.py --to 13 --to 9 MODEL ...   files, with inputs at random, at these opsets
    python tests/real/times.py --json out.json

Each model runs at its own opset and at each target, optimised as by default and on one thread, in turns: first the
source, then the result, again and again. The least time of each counts. The bars hold for targets from 11 on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HELPERS = str(Path(__file__).parents[1] / "helpers")
if HELPERS not in sys.path:
    sys.path.insert(0, HELPERS)

import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from real.moving import LANDMARKS, count_nodes, move, newest  # noqa: E402
from real.packages import LIGHT, ROWS, feeds_of, fetch  # noqa: E402

import onnx_convert  # noqa: E402
from oracle import feeds_for, opset_of  # noqa: E402

MEDIAN, P90, FROM = 1.02, 1.15, 11
"""The bars for the relations of run times, and the opset from which on they hold."""


@dataclass(frozen=True)
class Row:
    """One model at one target: its nodes, and the milliseconds of a run, before and after."""

    model: str
    opset: int
    target: int
    nodes_before: int
    nodes_after: int
    before: float
    after: float

    @property
    def relation(self) -> float:
        """How many times as long the result runs."""
        return self.after / self.before


def session(path: Path) -> onnxruntime.InferenceSession:
    """Returns the model as people run it, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def in_turns(runs: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Returns the least time that each run takes, in milliseconds, after so many seconds of turns."""
    least = [float("inf")] * len(runs)
    until, rounds = time.perf_counter() + seconds, 0
    while rounds < 5 or time.perf_counter() < until:
        for index, run in enumerate(runs):
            started = time.perf_counter()
            run()
            least[index] = min(least[index], 1000 * (time.perf_counter() - started))
        rounds += 1
    return least


def rows(
    path: Path, feeds: Mapping[str, Any], targets: Iterable[int], folder: Path, seconds: float, name: str = ""
) -> Iterator[Row | str]:
    """Yields what a model costs at each target, or why it does not get there or does not run."""
    name, start, nodes = name or path.name, opset_of(onnx.load(path, load_external_data=False)), count_nodes(path)
    source = session(path)
    for target in targets:
        try:
            moved = move(path, target, folder)
            result = session(moved)
            before, after = in_turns(
                [lambda: source.run(None, feeds), lambda result=result: result.run(None, feeds)], seconds
            )
        except onnx_convert.RefusedError as refused:
            yield f"{name}, {start} to {target}: refused, {refused.refusals[0].operator}"
        except Exception as error:  # noqa: BLE001 - onnxruntime has many ways to say what it lacks
            yield f"{name}, {start} to {target}: {' '.join(str(error).split())[:150]}"
        else:
            yield Row(name, start, target, nodes, count_nodes(moved), before, after)


def models(only: str) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yields the models of packages and of the onnx wheel whose names have a word, with inputs."""
    for requirement, member, inputs in ROWS:
        name = "/".join((requirement.partition("=")[0], Path(member).parent.name, Path(member).stem))
        if only in name:
            yield name, fetch(requirement) / member, feeds_of(inputs)
    for path in sorted(LIGHT.glob("*.onnx")):
        if only in path.stem:
            yield path.stem, path, feeds_of({value.name: tuple(value.shape) for value in session(path).get_inputs()})


def summary(found: Sequence[Row]) -> list[str]:
    """Returns median and 90th percentile of the relations, at each target and of all for which the bars hold."""
    lines = []
    for target in sorted({row.target for row in found}, reverse=True):
        relations = sorted(row.relation for row in found if row.target == target)
        lines.append(f"to {target:2}: {len(relations):3} models, {_figures(relations)}")
    judged = sorted(row.relation for row in found if row.target >= FROM)
    if judged:
        verdict = "ok" if statistics.median(judged) <= MEDIAN and _p90(judged) <= P90 else "OVER"
        lines.append(f"to {FROM} and above: {_figures(judged)}; bars {MEDIAN} and {P90}: {verdict}")
    return lines


def _figures(relations: Sequence[float]) -> str:
    return f"median {statistics.median(relations):.3f} x, p90 {_p90(relations):.3f} x, worst {relations[-1]:.2f} x"


def _p90(relations: Sequence[float]) -> float:
    return relations[max(0, -(-9 * len(relations) // 10) - 1)]


def main() -> None:
    """Measures, prints each row as it comes and a summary, and writes JSON if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--only", default="", metavar="WORD", help="models whose name has this word")
    parser.add_argument("--to", action="append", type=int, metavar="OPSET", help="instead of the usual targets")
    parser.add_argument("--seconds", type=float, default=4.0, help="of running, for each model and target")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    options = parser.parse_args()
    found: list[Row] = []
    given: Iterable[tuple[str, Path, dict[str, Any]]] = (
        ((path.name, path, dict(feeds_for(onnx.load(path)))) for path in options.files)
        if options.files
        else models(options.only)
    )
    print(f"{'model':44} opset    to  nodes before, after     ms before, after   relation")
    for name, path, feeds in given:
        start = opset_of(onnx.load(path, load_external_data=False))
        targets = options.to or [newest(), *(opset for opset in LANDMARKS if opset < start)]
        with tempfile.TemporaryDirectory(prefix="onnx-convert-times-") as folder:
            for row in rows(path, feeds, targets, Path(folder), options.seconds, name):
                if isinstance(row, str):
                    print(row, flush=True)
                    continue
                found.append(row)
                print(
                    f"{name:44} {row.opset:5} {row.target:5} {row.nodes_before:13} {row.nodes_after:6}"
                    f" {row.before:13.3f} {row.after:8.3f} {row.relation:8.3f} x", flush=True,
                )  # fmt: skip
    print("\n".join(summary(found)))
    if options.json:
        options.json.write_text(json.dumps([{**asdict(row), "relation": row.relation} for row in found], indent=2))


if __name__ == "__main__":
    main()
