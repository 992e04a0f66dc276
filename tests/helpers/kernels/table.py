# SPDX-License-Identifier: Apache-2.0
"""Makes a table of kernels from what releases of a runtime answered: a line for each version of an operator and the
releases that treat it alike. `onnx_convert.target.kernels` reads it, and says what a line means."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, permutations, product
from pathlib import Path
from typing import Final, NamedTuple

import onnx.defs
from onnx.defs import OpSchema

from kernels.ask import CRASHED, NO_KERNEL, RUNS
from kernels.probes import Probe, variables
from onnx_convert.spec import opsets

Combination = tuple[str, ...]
Box = tuple[frozenset[str], ...]
"""The types that each type variable may have, independently."""

IMPOSSIBLE: Final = ("does not match expected type", "BitCast requires", "must have the same element type")
"""What is said of dtypes that no valid model has together."""
UNKNOWN_TYPE: Final = "MLDataType for"


class Kernel(NamedTuple):
    """A kernel as a runtime lists it: the versions from `first` to `last` of an operator, and the types by variable."""

    domain: str
    operator: str
    first: int
    last: int
    types: dict[str, list[str]]

    def is_for(self, version: int) -> bool:
        """Returns whether it is for nodes of a version: an open end takes none but the first."""
        return self.first == version or self.first < version <= self.last < 2**31 - 1

    def covers(self, types: Mapping[str, str]) -> bool:
        """Returns whether it takes nodes with these types."""
        return all(types.get(name, allowed[0]) in allowed for name, allowed in self.types.items())


class Answers(NamedTuple):
    """What one release answered: the kernels that it lists, None if it lists none, and what came of each probe, by
    domain, operator and version, by stamp and by types."""

    kernels: list[Kernel] | None
    told: dict[tuple[str, str, int], dict[int, dict[Combination, str]]]


def read(probes: Sequence[Probe], path: Path) -> Answers:
    """Returns the answers in a file that `ask` wrote."""
    first, *lines = path.read_text().splitlines()
    listed = json.loads(first)
    told: dict[tuple[str, str, int], dict[int, dict[Combination, str]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        number, stamp, answer = line.split("\t")
        probe = probes[int(number)]
        key = probe.domain, probe.operator, probe.version
        told[key][int(stamp)][tuple(kind for _, kind in probe.types)] = answer
    return Answers(None if listed is None else [Kernel(*entry) for entry in listed], told)


class Line(NamedTuple):
    """A line of the table without its releases; `first` and `last` are the stamps that it holds for, 0 if for all."""

    domain: str
    operator: str
    version: int
    first: int
    last: int
    types: str


def lines(answers: Answers, others: Sequence[Kernel], opset: int, ml: int) -> Iterator[Line]:
    """Yields the lines of one release; where it lists no kernels, those that `others` list are taken for it if it
    contradicts none."""
    listed = answers.kernels if answers.kernels is not None else others
    kernels: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    for kernel in listed:
        kernels[kernel.domain, kernel.operator].append(kernel)
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version)):
        if schema.domain not in ("", "ai.onnx.ml") or schema.deprecated:
            continue
        if schema.since_version <= (ml if schema.domain else opset):
            mine = [k for k in kernels[schema.domain, schema.name] if k.is_for(schema.since_version)]
            told = answers.told.get((schema.domain, schema.name, schema.since_version), {})
            yield from _of_schema(schema, mine, told)
    if answers.kernels is not None:
        foreign = {(k.domain, k.operator, k.first) for k in listed if not opsets.is_known(k.domain)}
        yield from (Line(domain, operator, first, 0, 0, "?") for domain, operator, first in sorted(foreign))


def _of_schema(
    schema: OpSchema, kernels: Sequence[Kernel], told: Mapping[int, Mapping[Combination, str]]
) -> Iterator[Line]:
    place = schema.domain, schema.name, schema.since_version
    if schema.name == "Constant":
        yield Line(*place, 0, 0, "*")
        return
    types = variables(schema)
    by_stamp = []
    answers: dict[Combination, str] = {}
    for stamp in range(min(told, default=0), max(told, default=-1) + 1):
        answers |= told.get(stamp, {})  # one that was not asked for again has not changed
        taken = _taken(schema, types, kernels, answers)
        by_stamp.append((stamp, text_of_boxes(types, _boxes(types, taken, _free(answers)))))
    for text, group in groupby(by_stamp, key=lambda pair: pair[1]):
        stamps = [stamp for stamp, _ in group]
        if text:
            whole = len(stamps) == len(by_stamp)
            yield Line(*place, 0 if whole else stamps[0], 0 if whole else stamps[-1], text)


def _taken(
    schema: OpSchema, types: Mapping[str, Sequence[str]], kernels: Sequence[Kernel], told: Mapping[Combination, str]
) -> set[Combination]:
    """Returns the combinations that run; where the answer does not tell, those that a listed kernel takes."""
    found = set()
    for combination, answer in told.items():
        if answer == RUNS:
            found.add(combination)
        elif answer not in (NO_KERNEL, CRASHED) and UNKNOWN_TYPE not in answer:
            bound = dict(zip(types, combination, strict=True))
            bound |= {f.name: bound.get(f.type_str, f.type_str) for f in (*schema.inputs, *schema.outputs)}
            if not any(part in answer for part in IMPOSSIBLE) and any(kernel.covers(bound) for kernel in kernels):
                found.add(combination)
    return found


def _free(told: Mapping[Combination, str]) -> set[Combination]:
    """Returns the combinations that no valid model has."""
    return {c for c, answer in told.items() if any(part in answer for part in IMPOSSIBLE)}


def _boxes(types: Mapping[str, Sequence[str]], taken: set[Combination], free: set[Combination]) -> list[Box]:
    """Returns boxes that hold what is taken and besides it at most what is free: as few as are found."""
    if not taken:
        return []
    count = len(types)
    spans = tuple(frozenset(c[i] for c in taken) for i in range(count))
    if all(c in taken or c in free for c in product(*spans)):
        return [spans]
    best: list[Box] | None = None
    for order in permutations(range(count)):
        found = [
            tuple(box[order.index(i)] for i in range(count))
            for box in _split({tuple(c[i] for i in order) for c in taken}, {tuple(c[i] for i in order) for c in free})
        ]
        if best is None or len(found) < len(best):
            best = found
    assert best is not None
    return best


def _split(taken: set[Combination], free: set[Combination]) -> list[Box]:
    """Returns boxes by the first variable: its types that go with the same types of the others are taken together."""
    if not taken or not next(iter(taken)):
        return [()] if taken else []
    rests: dict[str, set[Combination]] = defaultdict(set)
    for first, *rest in taken:
        rests[first].add(tuple(rest))
    groups: dict[frozenset[Combination], set[str]] = defaultdict(set)
    for first, rest in rests.items():
        groups[frozenset(rest)].add(first)
    found: list[Box] = []
    for rest, firsts in groups.items():
        count = len(next(iter(rest)))
        spans = tuple(frozenset(c[i] for c in rest) for i in range(count))
        fine = all(c in rest or all((f, *c) in free for f in firsts) for c in product(*spans))
        loose = {tuple(c[1:]) for c in free if c[0] in firsts} if len(firsts) == 1 else set()
        others = [spans] if fine else _split(set(rest), loose)
        found += [(frozenset(firsts), *box) for box in others]
    return found


def text_of_boxes(types: Mapping[str, Sequence[str]], boxes: Sequence[Box]) -> str:
    """Returns the text of boxes: `*`, or `T=float,double;T1=-int64` between bars; "" if there are none."""
    texts = []
    for box in boxes:
        parts = []
        for (name, allowed), chosen in zip(types.items(), box, strict=True):
            if chosen != frozenset(allowed) and not any("map(" in kind for kind in allowed):
                left = sorted(frozenset(allowed) - chosen)
                inside, outside = (",".join(map(_short, kinds)) for kinds in (sorted(chosen), left))
                parts.append(f"{name}={inside}" if len(inside) <= len(outside) else f"{name}=-{outside}")
        texts.append(";".join(parts) or "*")
    return "|".join(sorted(set(texts)))


def _short(kind: str) -> str:
    """Returns the spelling of a type in the table: `float` for tensor(float), `seq(float)`, `map(string,float)`."""
    return re.sub(r"tensor\((\w+)\)", r"\1", kind).replace(" ", "")


def rendered(releases: Sequence[str], by_release: Mapping[str, Iterable[Line]]) -> Iterator[str]:
    """Yields the lines of a file: operator, version, stamps, types, and the releases from the first to the last; an
    open end is the newest."""
    held: dict[Line, list[int]] = defaultdict(list)
    for index, release in enumerate(releases):
        for line in by_release[release]:
            held[line].append(index)
    written = []
    for line, indices in held.items():
        for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
            run_of = [index for _, index in run]
            last = "" if run_of[-1] == len(releases) - 1 else releases[run_of[-1]]
            span = releases[run_of[0]] if last == releases[run_of[0]] else f"{releases[run_of[0]]}-{last}"
            written.append((line[:5], run_of[0], span, line.types))
    for (domain, operator, version, first, last), _, span, types in sorted(written):
        name = f"{domain}.{operator}" if domain else operator
        at = "" if not first else f"@{first}" if first == last else f"@{first}-{last}"
        yield f"{name} {version}{at} {span} {types}"
