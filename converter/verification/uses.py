# SPDX-License-Identifier: Apache-2.0
"""Who uses a value of a model, through nodes that hand its elements on, into subgraphs and functions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx_convert.model.attributes import given
from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import every_node
from onnx_convert.model.tensors import elements_of, tensor_of
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

# Operators that hand on elements as they are, of which inputs (others say how).
PASSES: Final[dict[str, tuple[int, ...]]] = dict.fromkeys(
    """Identity Cast CastLike Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Expand Tile Gather GatherElements
    GatherND SpaceToDepth DepthToSpace Pad Compress Optional OptionalGetElement""".split(),
    (0,),
) | {"Where": (1, 2), "Concat": tuple(range(64))}


class Body(NamedTuple):
    """The main graph or a function, with the graphs nested in it: who uses which value, and what is constant."""

    users: Mapping[str, list[tuple[NodeProto, int]]]
    constants: Mapping[str, TensorProto]


class Use(NamedTuple):
    """A node that takes a value, or elements of it, as its input `position`."""

    node: NodeProto
    position: int
    body: Body

    @property
    def operator(self) -> str:
        """The operator, without its domain."""
        return self.node.op_type

    def attribute(self, name: str, default: Any) -> Any:
        """Returns an attribute of the node."""
        return given(self.node).get(name, default)

    def input(self, position: int) -> str:
        """Returns the name of an input; "" if there is none."""
        return self.node.input[position] if position < len(self.node.input) else ""

    def constant(self, position: int) -> numpy.ndarray[Any, Any] | None:
        """Returns an input that is a constant of few elements."""
        tensor = self.body.constants.get(self.input(position))
        if tensor is None or tensor.external_data:
            return None
        return elements_of(tensor)


class Uses:
    """The uses of values in a model."""

    def __init__(self, model: ModelProto) -> None:
        self._functions = {function_key(f): (f, _body(f)) for f in model.functions}
        self._main = _body(model.graph)
        self.dims: dict[str, list[int]] = {}
        for tensor in model.graph.initializer:
            self.dims[tensor.name] = list(tensor.dims)

    def of(self, name: str) -> Iterator[Use]:
        """Yields every use of a value of the main graph."""
        yield from self._of(name, self._main, set())

    def _of(self, name: str, body: Body, seen: set[tuple[int, str]]) -> Iterator[Use]:
        if (id(body), name) in seen:
            return
        seen.add((id(body), name))
        for node, position in body.users.get(name, ()):
            yield Use(node, position, body)
            domain = opsets.canonical_domain(node.domain)
            called = self._functions.get((domain, node.op_type, getattr(node, "overload", "")))
            if called is not None:
                function, inside = called
                if position < len(function.input):
                    yield from self._of(function.input[position], inside, seen)
            elif not domain and position in PASSES.get(node.op_type, ()):
                for output in node.output:
                    yield from self._of(output, body, seen)
            elif node.op_type in ("Loop", "Scan"):
                for attribute in node.attribute:
                    if attribute.name == "body" and position < len(attribute.g.input):
                        yield from self._of(attribute.g.input[position].name, body, seen)


def _body(root: GraphProto | FunctionProto) -> Body:
    users: dict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
    constants: dict[str, TensorProto] = {}
    for tensor in getattr(root, "initializer", ()):
        constants[tensor.name] = tensor
    for node in every_node(root):
        for position, name in enumerate(node.input):
            if name:
                users[name].append((node, position))
        if node.op_type == "Constant" and (value := tensor_of(node)) is not None:
            constants[node.output[0]] = value
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                constants.update({tensor.name: tensor for tensor in graph.initializer})
    return Body(users, constants)
