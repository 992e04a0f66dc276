# SPDX-License-Identifier: Apache-2.0
"""Tries all adapters over their domains: `python tests/helpers/exhaust/run.py --budget 600 --seed 1`.

Crossings take turns, so a small budget tries a little of each. What fails is made as simple as its domain allows and
printed as a row of `tests/adapters`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":  # a script's own folder is on the path, its parent is not
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import onnx
from fuzz.trials import released

import onnx_convert.adapters  # noqa: F401 (fills the registry)
from exhaust.choices import Choices, Outside, Tree, again, shrink
from exhaust.domains import DOMAINS
from exhaust.judging import FAILED, OUTCOMES, Crossing, Verdict, judged, made
from exhaust.pasting import pasted
from onnx_convert.rewrite import registry

BATCH = 4  # cases of a crossing, before it is the next one's turn
KEPT_EVERY = 15.0  # seconds


@dataclass
class Walk:
    """How far a crossing is: cases that were tried, what became of them, and the failures by kind."""

    tried: int = 0
    done: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=dict)  # by kind, the picks of the first one, made simple


def crossings(only: Iterable[str] = ()) -> list[Crossing]:
    """Returns the crossings that an adapter makes, of operators that have a domain and a schema at the source."""
    found = []
    for (domain, operator, boundary, direction), decision in registry.decisions():
        if not isinstance(decision, registry.Adapter) or operator not in DOMAINS:
            continue
        if not domain and boundary > released()[-1]:  # onnx is still at work on it
            continue
        crossing = Crossing(operator, domain, boundary, direction)
        if (not set(only) or operator in only) and _exists(crossing):
            found.append(crossing)
    return sorted(found)


def _exists(crossing: Crossing) -> bool:
    try:
        return not onnx.defs.get_schema(crossing.operator, crossing.source, crossing.domain).deprecated
    except onnx.defs.SchemaError:
        return False


class Explorer:
    """Walks the domain of one crossing. The same seed makes the same cases in the same order."""

    def __init__(self, crossing: Crossing, seed: int) -> None:
        self.crossing = crossing
        self._tree = Tree(f"{seed} {crossing}")

    def next(self) -> list[int] | None:
        """Returns the picks of the next case; None if all were made."""
        while not self._tree.done:
            try:
                return self._tree.next(self._picked)
            except Outside:
                continue
        return None

    def _picked(self, choices: Choices) -> list[int]:
        made(self.crossing, choices)
        return choices.picked


def explore(
    walks: dict[Crossing, Walk], seed: int, budget: float, most: int = 10**9, keep: Callable[[], None] = lambda: None
) -> None:
    """Tries cases of all crossings in turn until the budget, in seconds, is used up; calls `keep` now and then."""
    until = time.monotonic() + budget
    kept = time.monotonic()
    explorers: dict[Crossing, Explorer] = {}
    open_ = [crossing for crossing, walk in walks.items() if not walk.done]
    open_.sort(key=lambda crossing: walks[crossing].tried)
    while open_ and time.monotonic() < until:
        for crossing in list(open_):
            walk = walks[crossing]
            if crossing not in explorers:
                explorers[crossing] = Explorer(crossing, seed)
                for _ in range(walk.tried):
                    explorers[crossing].next()
            for _ in range(BATCH):
                picked = explorers[crossing].next()
                if picked is None:
                    walk.done = True
                    open_.remove(crossing)
                    break
                _note(walk, crossing, picked, judged(crossing, picked))
                walk.tried += 1  # an interrupted case is tried again
                if time.monotonic() > until:
                    return
            if time.monotonic() > kept + KEPT_EVERY:
                kept = time.monotonic()
                keep()
            if walk.tried >= most and crossing in open_:
                open_.remove(crossing)


def _note(walk: Walk, crossing: Crossing, picked: list[int], verdict: Verdict) -> None:
    walk.outcomes[verdict.outcome] += 1
    if verdict.outcome != FAILED and verdict.kind:
        walk.outcomes[f"{verdict.outcome}: {verdict.kind}"] += 1
    if verdict.outcome == FAILED:
        walk.outcomes[f"failed: {verdict.kind}"] += 1
        if verdict.kind not in walk.failures:
            small = smallest(crossing, picked, verdict.kind)
            walk.failures[verdict.kind] = small
            sys.stdout.write(f"\n{shown(crossing, small)}\n")
            sys.stdout.flush()


def smallest(crossing: Crossing, picked: list[int], kind: str) -> list[int]:
    """Returns the simplest picks that fail in the same way."""

    def fails(lower: list[int]) -> list[int] | None:
        try:
            _, choices = again(lower, lambda choices: made(crossing, choices))
        except Outside:
            return None
        verdict = judged(crossing, choices.picked)
        return choices.picked if verdict.outcome == FAILED and verdict.kind == kind else None

    return shrink(picked, fails, patience=80)


def shown(crossing: Crossing, picked: list[int]) -> str:
    """Returns a case as text: what was picked, what became of it, and the row of it."""
    (case, target), choices = again(picked, lambda choices: made(crossing, choices))
    verdict = judged(crossing, picked)
    lines = [f"---- {crossing}: {case.opset} -> {target} {picked}", ", ".join(choices.named) or "the simplest case",
             f"{verdict.outcome} {verdict.kind}: {verdict.why[:700]}"]  # fmt: skip
    lines.append(pasted(crossing, picked))
    return "\n".join(lines)


def table(walks: dict[Crossing, Walk]) -> str:
    """Returns what became of the cases, a line for each operator."""
    by: dict[str, Counter[str]] = defaultdict(Counter)
    for crossing, walk in walks.items():
        by[crossing.operator] += Counter({"tried": walk.tried}) + walk.outcomes
        by[crossing.operator]["crossings"] += 1
        by[crossing.operator]["exhausted"] += walk.done
    columns = ("crossings", "exhausted", "tried", *OUTCOMES)
    total: Counter[str] = sum(by.values(), Counter())
    lines = [f"{'operator':28}" + "".join(f"{name:>11}" for name in columns)]
    for operator, counts in [*sorted(by.items()), ("all", total)]:
        lines.append(f"{operator:28}" + "".join(f"{counts[name]:>11}" for name in columns))
    lines += [f"{name} x{count}" for name, count in sorted(total.items()) if ": " in name]
    return "\n".join(lines)


def load(path: Path, found: list[Crossing], seed: int) -> dict[Crossing, Walk]:
    """Returns the walks of a state file; new ones where there is none, or one of another seed."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept = kept.get("walks", {}) if kept.get("seed") == seed else {}
    walks = {}
    for crossing in found:
        data = kept.get(str(crossing), {})
        walks[crossing] = Walk(data.get("tried", 0), data.get("done", False), Counter(data.get("outcomes", {})),
                               data.get("failures", {}))  # fmt: skip
    return walks


def save(path: Path, walks: dict[Crossing, Walk], seed: int) -> None:
    """Writes a state file; what it has of other crossings stays."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    others = kept.get("walks", {}) if kept.get("seed") == seed else {}
    mine = {str(crossing): walk.__dict__ for crossing, walk in walks.items()}
    half = path.with_name(f"{path.name}.new")
    half.write_text(json.dumps({"seed": seed, "walks": {**others, **mine}}))
    half.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if anything failed, or too much is not reached and does not say why."""
    asked = _parser().parse_args(arguments)
    walks = load(asked.state, crossings(asked.operator), asked.seed) if asked.state else {
        crossing: Walk() for crossing in crossings(asked.operator)}  # fmt: skip
    started = time.monotonic()

    def keep() -> None:
        if asked.state:
            save(asked.state, walks, asked.seed)

    try:
        explore(walks, asked.seed, asked.budget, most=asked.most, keep=keep)
    finally:
        keep()
    sys.stdout.write(f"\n{table(walks)}\n{time.monotonic() - started:.0f} s\n")
    sys.stdout.flush()
    failed = any(walk.failures for walk in walks.values())
    if asked.coverage:  # in a process that imports the adapters while it measures
        state = ["--state", str(asked.state)] if asked.state else []
        measure = subprocess.run([sys.executable, str(Path(__file__).with_name("measure.py")), *state], check=False)
        failed |= bool(measure.returncode)
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=600, metavar="S", help="seconds")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another order of the cases")
    parser.add_argument("--operator", nargs="*", default=[], metavar="X", help="these alone")
    parser.add_argument("--state", type=Path, metavar="FILE", help="go on where this file says, and write it")
    parser.add_argument("--most", type=int, default=10**9, metavar="K", help="cases of a crossing")
    parser.add_argument("--coverage", action="store_true", help="print what of adapters/ the rows and FILE reach")
    return parser


if __name__ == "__main__":
    sys.exit(main())
