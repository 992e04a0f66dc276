# SPDX-License-Identifier: Apache-2.0
"""The difference between two models as a unified text: their nodes in ONNX's text form, graph by graph.

The names of nodes are not compared. Nodes that both models have once serve as marks, the longest series of them that is
in the same order; what lies between two marks is compared in full where it is short. Weights that both models have are
compared as long as that is not much to read.
"""

from __future__ import annotations

import difflib
import hashlib
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import TensorProto

from onnx_convert.model import text
from onnx_convert.model.graphs import bodies, plain
from onnx_convert.model.tensors import elements, elements_of, unequal
from onnx_convert.spec import opsets
from onnx_convert.spec.types import dtype_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx import ModelProto, NodeProto

    from onnx_convert.model.source import SourceModel

_MUCH: Final = 1 << 26  # elements of weights of each model that are read
_SHORT: Final = 2000  # nodes between two marks that are compared one by one

Change = tuple[int, int, int, int]
"""Lines of the one, from and to, in whose place stand lines of the other, from and to."""


class Side(NamedTuple):
    """One of the two models, what it is called, and who has the elements of its weights, if these are to be
    compared."""

    name: str
    model: ModelProto
    source: SourceModel | None = None


def unified(before: Side, after: Side, context: int = 3) -> Iterator[str]:
    """Yields the lines of the difference of two models; none if their nodes are the same, and the weights that were
    compared."""
    one, other = _lines(before.model), _lines(after.model)
    header = [f"--- {before.name}\t{_stamps(before.model)}", f"+++ {after.name}\t{_stamps(after.model)}"]
    for path in dict.fromkeys([*one, *other]):
        old, new = one.get(path, []), other.get(path, [])
        for hunk in _hunks(changes(old, new), context, len(old)):
            yield from header
            header = []
            first, last = hunk[0], hunk[-1]
            start, stop = max(first[0] - context, 0), min(last[1] + context, len(old))
            begin, end = first[2] - (first[0] - start), last[3] + (stop - last[1])
            place = f" {path}" if path else ""
            yield f"@@ -{_span(start, stop)} +{_span(begin, end)} @@{place}"
            at = start
            for low, high, new_low, new_high in hunk:
                yield from (f" {line}" for line in old[at:low])
                yield from (f"-{line}" for line in old[low:high])
                yield from (f"+{line}" for line in new[new_low:new_high])
                at = high
            yield from (f" {line}" for line in old[at:stop])
    if lines := [*_weights(before, after)]:
        yield from [*header, "@@ weights @@", *lines]


def _weights(before: Side, after: Side) -> Iterator[str]:
    """Yields a line before and one after for each initializer of the main graphs that both have, and that differs."""
    source, result = before.source, after.source
    if source is None or result is None:
        return
    places = {tensor.name: tensor for tensor in after.model.graph.initializer}
    read = left = 0
    for tensor in before.model.graph.initializer:
        twin = places.get(tensor.name)
        if twin is None:
            continue
        line, new = (_weight(kind) for kind in (tensor, twin))
        if line != new:
            yield from (f"-{line}", f"+{new}")
            continue
        size = elements(tensor)
        pair = (source.elements(tensor), result.elements(twin)) if read + size <= _MUCH else ()
        if not pair or any(whole.external_data for whole in pair):  # whose file is missing, or nobody knows where
            left += 1
            continue
        read += size
        mine, its = map(elements_of, pair)
        if count := int(unequal(mine, its).sum()):
            yield from (f"-{line}", f"+{new}  # {count} of {mine.size} elements differ")
    if left:
        yield f" # not compared, too large or without a file: {left} weights"


def _weight(tensor: TensorProto) -> str:
    dims = f"[{','.join(map(str, tensor.dims))}]" if tensor.dims else ""
    known = tensor.data_type in TensorProto.DataType.values()
    line = f"{dtype_name(tensor.data_type) if known else '?'}{dims} {plain(tensor.name)}"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in line)


def _span(start: int, stop: int) -> str:
    return f"{start + 1 if stop > start else start},{stop - start}"


def _stamps(model: ModelProto) -> str:
    """Returns the opsets of a model in short."""
    told = [f"{opsets.shown(plain(entry.domain))} {entry.version}" for entry in model.opset_import]
    return ", ".join(told)


def _lines(model: ModelProto) -> dict[str, list[str]]:
    """Returns the nodes of each graph and function as lines, by the way to it."""
    found: dict[str, list[str]] = {}
    for body, path in bodies(model):
        found.setdefault(path, []).extend(map(_line, body.node))
    return found


def _line(node: NodeProto) -> str:
    """Returns a node as a line; where something is cut short, with a mark of the whole."""
    line = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text.node_text(node))
    if "..." not in line:
        return line
    whole = b"".join(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    return f"{line}  # {hashlib.sha256(whole).hexdigest()[:8]}"


def _hunks(found: Sequence[Change], context: int, length: int) -> Iterator[list[Change]]:
    """Yields changes that are so near to each other that the lines between them are shown."""
    hunk: list[Change] = []
    for change in found:
        if hunk and change[0] - hunk[-1][1] > 2 * context:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk
    assert not hunk or hunk[-1][1] <= length


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Returns what differs between two lists of lines, in order."""
    found: list[Change] = []
    at, new_at = 0, 0
    for place, new_place in [*_marks(old, new), (len(old), len(new))]:
        found += _between(old, new, (at, place, new_at, new_place))
        at, new_at = place + 1, new_place + 1
    return _joined(found)


def _marks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the places of lines that both have once: the longest series in the same order."""
    once, new_once = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if new_once[line] == 1}
    pairs = [(place, places[line]) for place, line in enumerate(old) if once[line] == 1 and line in places]
    ends: list[int] = []  # by length of a series, the least place in which one ends
    links: list[tuple[int, int]] = []  # the pair with which each of these ends, and the one before it
    ends_at: list[int] = []
    for index, (_, new_place) in enumerate(pairs):
        length = bisect_left(ends, new_place)
        links.append((index, ends_at[length - 1] if length else -1))
        if length == len(ends):
            ends.append(new_place)
            ends_at.append(index)
        else:
            ends[length], ends_at[length] = new_place, index
    series = []
    index = ends_at[-1] if ends_at else -1
    while index >= 0:
        series.append(pairs[index])
        index = links[index][1]
    return series[::-1]


def _between(old: Sequence[str], new: Sequence[str], span: Change) -> Iterator[Change]:
    """Yields what differs between two marks."""
    low, high, new_low, new_high = span
    if (low == high and new_low == new_high) or old[low:high] == new[new_low:new_high]:
        return
    if max(high - low, new_high - new_low) > _SHORT or low == high or new_low == new_high:
        yield span
        return
    matcher = difflib.SequenceMatcher(None, old[low:high], new[new_low:new_high], autojunk=False)
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag != "equal":
            yield low + first, low + last, new_low + new_first, new_low + new_last


def _joined(found: Sequence[Change]) -> list[Change]:
    """Returns changes of which none follows upon another at once."""
    joined: list[Change] = []
    for change in found:
        if joined and joined[-1][1] == change[0] and joined[-1][3] == change[2]:
            joined[-1] = (joined[-1][0], change[1], joined[-1][2], change[3])
        else:
            joined.append(change)
    return joined
