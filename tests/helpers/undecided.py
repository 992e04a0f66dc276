# SPDX-License-Identifier: Apache-2.0
"""The crossings that nobody has decided yet, so that a node which needs one is refused. The list may only shrink.

`python tests/helpers/undecided.py` writes `UNDECIDED` in this file anew from the installed onnx and the table of
decisions. Use the newest onnx for it; with an older one, the boundaries that it does not know fall out.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import onnx.defs

import onnx_convert.adapters
import onnx_convert.adapters.tables.compatible  # noqa: F401
from onnx_convert.rewrite import registry
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterable

Crossing = tuple[str, str, int, str]  # domain, operator, boundary, direction: the key of the registry

UNDECIDED = """
"""


def every_crossing() -> set[Crossing]:
    """Returns all crossings of the installed onnx; what introduces an operator can be crossed downwards only."""
    versions = defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        versions[schema.domain, schema.name].add(schema.since_version)
    return {
        (domain, operator, boundary, direction)
        for (domain, operator), known in versions.items()
        for boundary in known - {1}
        for direction in (opsets.UP, opsets.DOWN)
        if direction == opsets.DOWN or boundary > min(known)
    }


def undecided() -> set[Crossing]:
    """Returns the crossings of the installed onnx for which the registry has no entry."""
    return every_crossing() - {key for key, _ in registry.decisions()}


def listed_undecided(text: str = UNDECIDED) -> set[Crossing]:
    """Returns what a text like `UNDECIDED` lists, as crossings; an indented line goes on with the line above it."""
    crossings = set()
    for paragraph in text.replace("\n  ", " ").splitlines():
        head, _, operators = paragraph.partition(": ")
        for operator in operators.split():
            domain, boundary, direction = head.split()
            crossings.add((opsets.canonical_domain(domain), operator, int(boundary), direction))
    return crossings


def format_undecided(crossings: Iterable[Crossing]) -> str:
    r"""The text of `UNDECIDED` for these crossings: one paragraph a boundary and direction, operators in order.

    >>> format_undecided([("", "Softmax", 13, "up"), ("", "Hardmax", 13, "up")])
    '\nai.onnx 13 up: Hardmax Softmax\n'
    """
    paragraphs = defaultdict(list)
    for domain, operator, boundary, direction in sorted(crossings):
        paragraphs[domain, boundary, direction].append(operator)
    text = "\n"
    for (domain, boundary, direction), operators in sorted(paragraphs.items()):
        line = f"{opsets.shown(domain)} {boundary} {direction}: {' '.join(operators)}"
        text += textwrap.fill(line, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"
    return text


if __name__ == "__main__":
    this = Path(__file__)
    listing = 'UNDECIDED = """{}"""'.format
    source = this.read_text(encoding="utf-8")
    fresh = source.replace(listing(UNDECIDED), listing(format_undecided(undecided())), 1)
    this.write_text(fresh, encoding="utf-8")
