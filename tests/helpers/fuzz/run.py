# SPDX-License-Identifier: Apache-2.0
"""Judges many random models and prints each failure as a small one: `python tests/helpers/fuzz/run.py --help`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":  # a script's own folder is on the path, its parent is not
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
import onnx.printer

import onnx_convert
from fuzz.growing import copied
from fuzz.judge import FAILED, REFUSED, Verdict, judge
from fuzz.shrink import shrink, with_nodes
from fuzz.trials import Tally, Trial, make


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if anything failed."""
    asked = _parser().parse_args(arguments)
    outcomes: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    tally, started = Tally(), time.monotonic()
    for seed in range(asked.seed, asked.seed + asked.count):
        if time.monotonic() - started > asked.seconds:
            break
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{seed}")
        for trial, verdict in judged(seed, tally):
            outcomes[verdict.outcome] += 1
            if verdict.outcome == FAILED:
                small, failure = smallest(trial, verdict.kind)
                sign = signature(small, failure)
                failures[sign] += 1
                if failures[sign] <= asked.repeat:
                    sys.stdout.write(f"\n---- seed {seed}: {sign}\n{reproducer(small, failure)}\n")
                    sys.stdout.flush()
    sys.stdout.write(f"\n{summary(outcomes, failures, tally)}\n{time.monotonic() - started:.0f} s\n")
    return int(bool(failures))


def judged(seed: int, tally: Tally | None = None) -> Iterator[tuple[Trial, Verdict]]:
    """Returns the trial of a seed with its verdict, and, if some nodes were refused, what is left without them."""
    trial = make(seed, tally)
    if trial is None:
        return
    verdict = judge(trial)
    yield trial, verdict
    rest = [node for node in trial.flat.graph.node if not any(node.name in name for name in verdict.nodes)]
    if verdict.outcome == REFUSED and rest and len(rest) < len(trial.flat.graph.node):
        trial = with_nodes(trial, rest)
        yield trial, judge(trial)


def smallest(trial: Trial, kind: str, patience: int = 400) -> tuple[Trial, Verdict]:
    """Returns a small trial that fails in the same way, and its verdict."""

    def fails(other: Trial) -> bool:
        verdict = judge(other)
        return verdict.outcome == FAILED and verdict.kind == kind

    small = shrink(trial, fails, patience)
    return small, judge(small)


def signature(trial: Trial, verdict: Verdict) -> str:
    """Returns what failures of one cause share, more or less: kind, operators, direction, and the adapter that is
    named."""
    operators = "+".join(sorted({node.op_type for node in trial.flat.graph.node}))
    direction = "up" if trial.target > trial.source else "down"
    adapter = re.search(r"adapter (\w+)", verdict.why)
    disguises = "".join(f" {name}" for name, _ in trial.disguises)
    return f"{verdict.kind} {operators} {direction}{disguises}{f' by {adapter[1]}' if adapter else ''}"


def reproducer(trial: Trial, verdict: Verdict) -> str:
    """Returns the failure as text: what was asked, what was seen, the model, and the inputs that are small enough to
    print."""
    case = trial.disguised()
    feeds = [f"{name} = {_shown(array)}" for name, array in case.feeds.items()]
    try:
        became = onnx.printer.to_text(onnx_convert.convert(case.model, to=trial.target, **trial.options).model)
    except Exception as error:  # noqa: BLE001 (that may be the failure)
        became = f"{type(error).__name__}"
    text = onnx.printer.to_text(case.model)
    return "\n".join([str(trial), verdict.why[:1500], row(trial), text, *feeds, "becomes", became[:4000]])


def row(trial: Trial) -> str:
    """Returns the flat model as a row for a table of boundaries, where it will run in all variants."""
    feeds = {n: a.tolist() for n, a in trial.feeds.items() if a.dtype.kind in "iub" and a.size <= 16}
    more = "".join(f", {key}={value!r}" for key, value in {"feeds": feeds, "options": trial.options}.items() if value)
    name = "+".join(node.op_type for node in trial.flat.graph.node)
    return f'rewrites("{name}", {trial.source}, {trial.target}, """{graph_text(trial)}"""{more}),'


def graph_text(trial: Trial) -> str:
    """Returns the flat graph on one line, as rows have it: no names of graph and nodes, initializers apart from the
    inputs."""
    graph = copied(trial.flat.graph)
    fixed = {tensor.name for tensor in graph.initializer}
    for value in [value for value in graph.input if value.name in fixed]:
        graph.input.remove(value)
    for node in graph.node:
        node.name = ""
    text = onnx.printer.to_text(graph).removeprefix(graph.name)
    return " ".join(text.replace('[""] ', "").split())


def _shown(array: np.ndarray) -> str:
    return f"{array.dtype} {array.tolist()}" if array.size <= 16 else f"{array.dtype}{list(array.shape)}"


def summary(outcomes: Counter[str], failures: Counter[str], tally: Tally) -> str:
    """The counts: outcomes, failures by cause, and operators that seldom could be made."""
    lines = [", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())]
    lines += [f"{count} x {sign}" for sign, count in failures.most_common()]
    if seldom := sorted(name for name, times in tally.unfit.items() if times > tally.made.get(name, 0)):
        lines.append(f"seldom made: {' '.join(seldom)}")
    lines.append(f"{sum(tally.made.values())} nodes of {len(tally.made)} operators, {sum(tally.unfit.values())} unfit")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed; each model has its own")
    parser.add_argument("--count", type=int, default=1000, metavar="M", help="how many seeds")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="stop after that time")
    parser.add_argument("--repeat", type=int, default=1, metavar="K", help="print that many of each cause")
    return parser


if __name__ == "__main__":
    sys.exit(main())
