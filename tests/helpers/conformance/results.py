# SPDX-License-Identifier: Apache-2.0
"""The file of a run, its summary, and what changed between two runs.

The file is JSON lines: first what was run, then one record a case and target, in the order of the corpus.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.judge import CORRECT, CRASH, INVALID, REFUSED, UNVERIFIABLE, VERDICTS, WRONG, Record

BAD = (WRONG, INVALID, CRASH)
REPRODUCERS = 5
_NAME = re.compile(r"'[^']*'|\b0x[0-9a-f]+\b")
JUDGED = (CORRECT, WRONG, INVALID, CRASH, REFUSED)


def write(path: Path, header: Mapping[str, Any], records: Iterable[Record]) -> None:
    """Writes a run."""
    with path.open("w", encoding="utf-8") as file:
        for line in (header, *records):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """The header and the records of a run."""
    with path.open(encoding="utf-8") as file:
        header, *records = map(json.loads, file)
    return header, records


def summary(records: Sequence[Record], *, most: int = 40) -> str:
    """Verdicts by direction, refusals by reason, and every result that is not what was promised; as text."""
    lines = [*_table(records), "", *_refusals(records, most), *_bad(records), *_unverifiable(records, most)]
    return "\n".join(lines)


def _table(records: Sequence[Record]) -> Iterator[str]:
    yield f"{'':14}" + "".join(f"{d:>8}{'':9}" for d in ("up", "down", "both"))
    columns = [Counter(r["verdict"] for r in records if d in (r["direction"], "both")) for d in ("up", "down", "both")]
    totals = [sum(column[v] for v in JUDGED) for column in columns]
    for verdict in JUDGED:
        cells = (_share(column[verdict], total) for column, total in zip(columns, totals, strict=True))
        yield f"{verdict:14}" + "".join(cells)
    yield f"{'judged':14}" + "".join(f"{total:8}{'':9}" for total in totals)
    yield f"{UNVERIFIABLE:14}" + "".join(f"{column[UNVERIFIABLE]:8}{'':9}" for column in columns)


def _share(count: int, total: int) -> str:
    return f"{count:8} {100 * count / total if total else 0:6.2f}% "


def _refusals(records: Iterable[Record], most: int) -> Iterator[str]:
    """A target with several refusals counts for each distinct reason."""
    reasons: Counter[str] = Counter()
    for record in records:
        if record["verdict"] == REFUSED:
            reasons.update({_reason(record["direction"], refusal) for refusal in record["refusals"]})
    yield f"refusals by reason ({len(reasons)}):" if reasons else "no refusals"
    yield from _most(reasons, most)


def _reason(direction: str, refusal: Mapping[str, Any]) -> str:
    where = f"{refusal['operator']}@{refusal['boundary']}" if refusal["operator"] else ""
    return f"{direction:4} {where:28} {re.sub(_NAME, '...', refusal['reason'])}"


def _bad(records: Iterable[Record]) -> Iterator[str]:
    """By cause, each with a few of its cases; the file has all of them."""
    causes: dict[str, dict[str, list[Record]]] = {verdict: {} for verdict in BAD}
    for record in records:
        if record["verdict"] in BAD:
            causes[record["verdict"]].setdefault(_cause(record), []).append(record)
    for verdict, found in causes.items():
        if found:
            yield f"\n{verdict} ({sum(map(len, found.values()))}, {len(found)} causes):"
        for cause, those in sorted(found.items(), key=lambda item: -len(item[1])):
            yield f"  {len(those):6} {cause}"
            for record in those[:REPRODUCERS]:
                by = f" [{record['evaluator']}]" if "evaluator" in record else ""
                yield f"           {record['case']} {record['opset']} -> {record['target']}{by}: {record['why']}"


def _cause(record: Record) -> str:
    """What results that are wrong for the same reason are likely to share."""
    if record["verdict"] == WRONG:
        return f"{record['direction']:4} {record['operator']}, {'+'.join(record['rewrites']) or 'nothing rewritten'}"
    return f"{record['direction']:4} {re.sub(r'[0-9]+', '#', re.sub(_NAME, '...', record['why']))}"


def _unverifiable(records: Iterable[Record], most: int) -> Iterator[str]:
    operators = Counter(record["operator"] for record in records if record["verdict"] == UNVERIFIABLE)
    if operators:
        yield f"\nunverifiable by operator ({len(operators)}):"
        yield from _most(operators, most)


def _most(counter: Counter[str], most: int) -> Iterator[str]:
    for text, count in sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:most]:
        yield f"  {count:6} {text}"
    if len(counter) > most:
        yield f"  ... and {len(counter) - most} more"


def changes(before: Iterable[Record], after: Iterable[Record]) -> str:
    """What became of each case and target that both runs have; empty if all verdicts are the same."""
    old = {(r["case"], r["target"]): r for r in before}
    pairs = [(old[key], r) for r in after if (key := (r["case"], r["target"])) in old]
    moved = Counter((one["verdict"], other["verdict"]) for one, other in pairs if one["verdict"] != other["verdict"])
    lines = [f"{count:6} {one} -> {other}" for (one, other), count in sorted(moved.items(), key=_by_gravity)]
    for one, other in pairs:
        if one["verdict"] != other["verdict"] and (other["verdict"] in BAD or one["verdict"] == CORRECT):
            why = other.get("why") or other["refusals"][0]["reason"]
            route = f"{one['case']} {one['opset']} -> {one['target']}"
            lines.append(f"  {route}: {one['verdict']} -> {other['verdict']}: {why}")
    return "\n".join(lines)


def _by_gravity(item: tuple[tuple[str, str], int]) -> tuple[int, int]:
    (one, other), _ = item
    return VERDICTS.index(other), VERDICTS.index(one)
