# SPDX-License-Identifier: Apache-2.0
"""A long graph is inferred and checked stretch by stretch, each with what the earlier ones found of the values it uses.

As one piece it outgrows the processor's caches: for 100,000 nodes onnx needs half as long again as for ten times
10,000, and several times the memory. A stretch finds what the whole graph would tell, because nothing crosses from one
to the next but what a type says: no elements, of which inference knows those of axes and shapes, and no dimension that
it gave a name itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx import GraphProto, ModelProto, ValueInfoProto

from onnx_convert.types import MADE_UP
from onnx_convert.wire import BYTES, prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LENGTH: Final = 4000  # nodes of the source, some 6 MB in the hands of onnx
_GRAPH: Final = ModelProto.DESCRIPTOR.fields_by_name["graph"].number << 3 | BYTES


class Stretch:
    """Nodes in a row: where they begin in their list, the names of the values that they use, and of those they make."""

    __slots__ = ("made", "start", "used")

    def __init__(self, start: int = 0, used: Iterable[str] = (), made: Iterable[str] = ()) -> None:
        self.start = start
        self.used = set(used)
        self.made = set(made)


def with_nodes(head: ModelProto, *nodes: bytes) -> bytes:
    """A serialised model with more nodes than its message has: a graph that is given in several parts is one."""
    parts = [head.SerializeToString()]
    for part in nodes:
        parts += (prefix(_GRAPH, len(part)), part)
    return b"".join(parts)


def inferred(
    head: ModelProto,
    nodes: Sequence[bytes],
    stretches: Sequence[Stretch],
    infer: Callable[[bytes], GraphProto],
    check: Callable[[bytes], None] | None = None,
) -> GraphProto | None:
    """The inferred graph, without nodes, of a model whose message `head` has none; None if more crosses from stretch to
    stretch than a type says, or if two of them make the same value.

    `nodes` are those of each stretch as a serialised graph. `infer` and `check` are given a model for each; what they
    raise passes. A stretch may be said to use and make more than it does; what is missing is then found by `check`.
    """
    relay = _Relay(head.graph, stretches)
    made: set[str] = set()
    for stretch, own in zip(stretches, nodes, strict=True):
        part = ModelProto(ir_version=head.ir_version, opset_import=head.opset_import)
        relay.begin(part.graph, stretch)
        body = infer(with_nodes(part, own))
        if not relay.end(part.graph, body):
            return None
        if check is not None:
            check(with_nodes(part, own))
            new = {value.name for value in body.value_info}.difference(stretch.used - stretch.made)
            if not made.isdisjoint(new):
                return None
            made |= new
    return relay.graph if relay.arrives() else None


class _Relay:
    """Gives each stretch its share of the graph that they make together, and what earlier ones hand on."""

    def __init__(self, graph: GraphProto, stretches: Sequence[Stretch]) -> None:
        self.graph = graph
        self._inputs = {value.name: value for value in graph.input}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._stated = {value.name: value for value in graph.value_info}
        self._outputs = {value.name: value for value in graph.output}
        self._given = self._inputs.keys() | self._constants.keys()
        self._wanted = set().union(*(stretch.used - stretch.made for stretch in stretches)) - self._given - {""}
        self._handed_on: dict[str, ValueInfoProto] = {}
        self._found_of_outputs: dict[str, ValueInfoProto] = {}
        self._found: list[bytes] = []

    def begin(self, part: GraphProto, stretch: Stretch) -> None:
        """Fills the graph around a stretch. What later ones want is an output, whose type inference has to find."""
        given: set[str] = set() if self._found else self._given  # some may be used by none, or be outputs at once
        lacks = stretch.used - stretch.made | given
        part.name = self.graph.name
        part.input.extend(self._inputs[name] for name in lacks & self._inputs.keys())
        part.input.extend(self._handed_on[name] for name in lacks & self._handed_on.keys())
        part.initializer.extend(self._constants[name] for name in lacks & self._constants.keys())
        part.output.extend(self._outputs[name] for name in self._outputs.keys() & (stretch.made | given))
        wanted = stretch.made & self._wanted - self._outputs.keys()
        part.output.extend(self._stated.get(name) or ValueInfoProto(name=name) for name in wanted)
        stated = self._stated.keys() & (stretch.made | lacks) - wanted - self._handed_on.keys()
        part.value_info.extend(self._stated[name] for name in stated)

    def end(self, part: GraphProto, body: GraphProto) -> bool:
        """Takes what inference found of a stretch, and states it of outputs that are none of the graph; whether that is
        all that the whole graph would tell."""
        told = [value.SerializeToString() for value in body.output]
        for index in reversed(range(len(told))):
            value = ValueInfoProto.FromString(told[index])  # one of the body would keep all of that in memory
            if value.name in self._outputs:
                self._found_of_outputs[value.name] = value
            elif value.type.WhichOneof("value"):
                part.output[index].CopyFrom(value)
            else:  # it went: who uses it nevertheless will not find it
                del part.output[index]
                continue
            if value.name in self._stated:
                body.value_info.append(value)
            if value.name in self._wanted:
                if not _is_told_by_type(value):
                    return False
                self._handed_on[value.name] = value
        for field in ("name", "node", "input", "output", "initializer"):
            body.ClearField(field)
        self._found.append(body.SerializeToString())
        return not any(MADE_UP.encode() in data for data in (*told, self._found[-1]))

    def arrives(self) -> bool:
        """Completes the graph by what was found of all stretches; whether nothing is missing."""
        if self._outputs.keys() != self._found_of_outputs.keys():
            return False
        for name, value in self._found_of_outputs.items():
            self._outputs[name].CopyFrom(value)
        self.graph.ClearField("value_info")
        self.graph.MergeFromString(b"".join(self._found))
        return True


def _is_told_by_type(value: ValueInfoProto) -> bool:
    """Whether inference knows nothing of a value but its type: of lists and numbers it may know the elements."""
    return value.type.tensor_type.HasField("shape") and len(value.type.tensor_type.shape.dim) > 1
