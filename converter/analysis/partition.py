# SPDX-License-Identifier: Apache-2.0
"""A long graph is inferred and checked chunk by chunk, each with what the earlier ones found of the values it uses.

As one piece it outgrows the processor's caches: for 100,000 nodes onnx needs half as long again as for ten times
10,000, and several times the memory. Beside types inference knows the elements of axes and shapes, and dimensions by
names that it makes up. Where these might cross from a chunk to the next, the graph is seen as a whole.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from onnx_convert.analysis.view import with_nodes
from onnx_convert.spec.types import MADE_UP, contradicts, has_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.analysis.view import View
    from onnx_convert.model.node_list import Chunk


class Found(NamedTuple):
    """The findings of inference about a long view: its main graph without nodes, and how many values the nodes make."""

    graph: GraphProto
    values: int

    @property
    def is_ranked(self) -> bool:
        """Whether the rank of each value was found, without a look at what the model states."""
        told = len(self.graph.value_info) + len(self.graph.output)
        values = chain(self.graph.value_info, self.graph.output)
        return told >= self.values and all(has_shape(value.type) for value in values)


def inferred(
    seen: View, infer: Callable[[bytes], GraphProto], check: Callable[[bytes], None] | None = None
) -> Found | None:
    """Returns what is found of a long view chunk by chunk; the view is spent then. None if the view is not long, has
    functions, or has to be seen as a whole.

    `infer` and `check` are given each chunk as a serialised model; what they raise is left for the whole to tell.
    With a `check` a chunk that is not exact may say that it uses or makes more than it does; without one it is
    believed. The sizes that the model states of its outputs are kept from `infer`, and compared with what it finds.
    """
    if len(seen.chunks) < 2 or seen.head.functions or not _is_told_once(seen.head.graph):
        return None
    relay = _Relay(seen)
    for chunk, nodes in zip(seen.chunks, seen.nodes, strict=True):
        if check is None and not relay.is_ready(chunk):
            return None
        part = relay.begin(chunk)
        try:
            if check is not None:
                check(with_nodes(part, nodes))
            body = infer(with_nodes(_without_sizes(part), nodes))
        except Exception:  # C++ errors come as several unrelated types
            return None
        believed = check is None or chunk.exact
        made = chunk.made if believed else {name for node in body.node for name in node.output[:]} - {""}
        if not relay.end(body, made):
            return None
    return relay.whole()


class _Relay:
    """Gives each chunk its share of the graph that they make together, and what earlier ones hand on."""

    def __init__(self, seen: View) -> None:
        self._head = seen.head
        graph = seen.head.graph
        self._inputs = {value.name: value for value in graph.input}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._stated = {value.name: value for value in graph.value_info}
        self._outputs = {value.name: value for value in graph.output}  # that no chunk had yet
        self._claims = {value.name: value.type for value in graph.output}
        self._made = self._inputs.keys() | self._constants.keys()
        self._wanted = set().union(*(chunk.used - chunk.made for chunk in seen.chunks)) - self._made
        self._handed_on: dict[str, ValueInfoProto] = {}
        self._found: list[bytes] = []
        self._values = 0

    def is_ready(self, chunk: Chunk) -> bool:
        """Returns whether earlier ones made all that a chunk uses; nodes need not be in order."""
        return self._wanted.isdisjoint(chunk.used - chunk.made)

    def begin(self, chunk: Chunk) -> ModelProto:
        """Returns the model around a chunk."""
        lacks = chunk.used & self._made
        if not self._found:
            lacks = self._made.copy()  # what is given may be used by nobody, and is to be checked too
        part = ModelProto(
            domain=self._head.domain, ir_version=self._head.ir_version, opset_import=self._head.opset_import
        )
        graph = part.graph
        graph.name = self._head.graph.name
        graph.input.extend(self._inputs[name] for name in lacks & self._inputs.keys())
        graph.input.extend(self._handed_on[name] for name in lacks & self._handed_on.keys())
        graph.initializer.extend(self._constants[name] for name in lacks & self._constants.keys())
        graph.output.extend(self._outputs.pop(name) for name in chunk.made & self._outputs.keys())
        stated = self._stated.keys() & (chunk.made | lacks)
        graph.value_info.extend(self._stated[name] for name in stated if name not in self._handed_on)
        return part

    def end(self, body: GraphProto, made: set[str]) -> bool:
        """Takes what inference found of a chunk that made these values; whether it is what the whole would tell."""
        if not self._made.isdisjoint(made):
            return False
        self._made |= made
        self._values += len(made)
        for value in body.output:
            if not _take_claim(value.type, self._claims[value.name]):
                return False
        wanted = self._wanted & made
        for value in chain(body.output, reversed(body.value_info)):  # most are made near the end
            if not wanted:
                break
            if value.name in wanted:
                if not _is_told_by_type(value):
                    return False
                self._handed_on[value.name] = _copy(value)
                self._wanted.remove(value.name)
                wanted.remove(value.name)
        for field in ("name", "node", "input", "initializer"):
            body.ClearField(field)
        self._found.append(body.SerializeToString())
        return MADE_UP.encode() not in self._found[-1]

    def whole(self) -> Found | None:
        """Returns the graph that the chunks make together, with what is stated of other values; None if one of its
        outputs is not made by any."""
        if self._outputs:
            return None
        others = (value for name, value in self._stated.items() if name not in self._made)
        self._found.append(GraphProto(value_info=others).SerializeToString())
        graph = self._head.graph
        for field in ("output", "value_info"):
            graph.ClearField(field)
        graph.MergeFromString(b"".join(self._found))
        return Found(graph, self._values)


def _is_told_once(graph: GraphProto) -> bool:
    """Returns whether each statement of the graph is of another value."""
    fields = (graph.initializer, graph.value_info, graph.output)
    return all(len({item.name for item in items}) == len(items) for items in fields)


def _without_sizes(part: ModelProto) -> ModelProto:
    """Takes what is stated of the sizes of outputs off a chunk."""
    for value in part.graph.output:
        value.type.tensor_type.ClearField("shape")
    return part


def _take_claim(found: TypeProto, claim: TypeProto) -> bool:
    """Adds to what was found of an output what the model states of it; whether inference would have agreed."""
    if not has_shape(claim):
        return True
    if not has_shape(found) or contradicts(found, claim):
        return False
    for mine, stated in zip(found.tensor_type.shape.dim, claim.tensor_type.shape.dim, strict=True):
        if stated.HasField("dim_value") or (stated.HasField("dim_param") and not mine.HasField("dim_value")):
            mine.CopyFrom(stated)
    return True


def _copy(value: ValueInfoProto) -> ValueInfoProto:
    """Returns the value apart from what holds it, which is then not kept in memory."""
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    return copy


def _is_told_by_type(value: ValueInfoProto) -> bool:
    """Returns whether inference knows nothing of a value but its type. Of numbers and lists it may know the elements,
    also if dimensions of size 1 are added, and whatever the dtype, since a Cast keeps them."""
    return len([dim for dim in value.type.tensor_type.shape.dim if dim.dim_value != 1]) > 1
