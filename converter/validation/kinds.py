# SPDX-License-Identifier: Apache-2.0
"""Divides the nodes of a source into kinds, each of which is judged once: an operator with these attributes, so many
outputs, and what is certain of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import AttributeProto, TensorProto

from onnx_convert.model import tensors
from onnx_convert.model.attributes import attribute_value
from onnx_convert.model.graphs import subgraphs
from onnx_convert.spec import opsets
from onnx_convert.spec.types import size, tensor_type, type_str
from onnx_convert.validation import shapes, uses
from onnx_convert.validation.uses import Known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import FunctionProto, GraphProto, NodeProto, TypeProto

    from onnx_convert.model.source import SourceModel

_PLAIN = frozenset(
    (
        AttributeProto.FLOAT,
        AttributeProto.INT,
        AttributeProto.STRING,
        AttributeProto.FLOATS,
        AttributeProto.INTS,
        AttributeProto.STRINGS,
        AttributeProto.UNDEFINED,
    )
)
_SHORT = 64  # elements
_SMALL = 1024  # bytes
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)

Key = tuple[Any, ...]
"""Names all that a verdict on a node depends on: its body, domain, operator, attributes, outputs, inputs."""


class Case(NamedTuple):
    """The first node of a kind, with what is certain of its inputs by name."""

    node: NodeProto
    domain: str
    opset: int
    known: dict[str, Known]

    def type_str_of(self, name: str) -> str:
        """Returns the type of a value as schemas spell it, "" if it is not certain."""
        known = self.known.get(name)
        return known.type_str if known is not None else ""

    @property
    def use(self) -> uses.Use:
        """The known facts about ranks and lengths."""
        node = self.node
        given = {a.name: attribute_value(a) for a in node.attribute if a.type in _PLAIN and a.type}
        given = {name: value for name, value in given.items() if not _is_reference(node, name)}
        return uses.Use(node.op_type, self.opset, [self.known.get(n) for n in node.input], len(node.output), given)


def _is_reference(node: NodeProto, name: str) -> bool:
    return any(a.name == name and a.ref_attr_name for a in node.attribute)


class Kinds:
    """The kinds of nodes of a source."""

    def __init__(self, source: SourceModel) -> None:
        self._source = source
        self.cases: dict[Key, Case] = {}
        self.constants: list[NodeProto] = []  # each of which is its own kind
        cases = self.cases
        for number, (body, imports, known) in enumerate(self._bodies()):
            for key, node in self._nodes(body, number, known):
                if key not in cases:
                    domain = opsets.canonical_domain(node.domain)
                    cases[key] = Case(node, domain, imports.get(domain, 0), known)

    def nodes(self) -> Iterator[tuple[Key, NodeProto]]:
        """Yields all nodes, each with its kind."""
        self.constants = []
        for number, (body, _, known) in enumerate(self._bodies()):
            yield from self._nodes(body, number, known)

    def _bodies(self) -> Iterator[tuple[GraphProto | FunctionProto, dict[str, int], dict[str, Known]]]:
        """Yields each body with its opsets, and what is certain of its values."""
        model, imports = self._source.proto, self._source.imports
        known = {value.name: of_type(value.type) for value in model.graph.input}
        replaceable = known.keys() if model.ir_version > opsets.INPUTS_ONLY else ()
        for tensor in model.graph.initializer:
            known[tensor.name] = _of_tensor(tensor, is_read=tensor.name not in replaceable)
        yield model.graph, imports.main, known
        for training in model.training_info:
            yield training.initialization, imports.main, {}
            yield training.algorithm, imports.main, {}
        for function, own in zip(model.functions, imports.functions, strict=True):
            yield function, own, {}

    def _nodes(
        self, body: GraphProto | FunctionProto, number: int, known: dict[str, Known]
    ) -> Iterator[tuple[Key, NodeProto]]:
        """Yields all nodes of a body, those of subgraphs included. A name means the same in all graphs of one scope."""
        holds: dict[tuple[str, str], tuple[bool, bool, bool]] = {}
        types = {name: one.type_str for name, one in known.items()}
        for node in body.node:
            operator = node.domain, node.op_type
            if operator not in holds:
                domain = opsets.canonical_domain(node.domain)
                mine = domain == opsets.AI_ONNX
                holds[operator] = (
                    opsets.may_hold_graphs(node.op_type, domain),
                    mine and node.op_type in shapes.RULES,
                    mine and node.op_type == "Constant",
                )
            may_hold, has_rules, is_constant = holds[operator]
            inputs = node.input[:]
            if is_constant:
                self.constants.append(node)
                one = _of_constant(node)
                if one is not None and node.output:
                    known[node.output[0]] = one
                    types[node.output[0]] = one.type_str
            if has_rules:
                told: tuple[Any, ...] = tuple([known.get(name) for name in inputs])
            else:
                told = tuple([types.get(name, "") for name in inputs])
            held = node.attribute
            attributes = tuple([_key_of(attribute) for attribute in held]) if held else ()
            yield (number, *operator, attributes, len(node.output), told), node
            if may_hold:
                for _, _, graph in subgraphs(node):
                    inner = known | {value.name: Known() for value in graph.input}
                    for tensor in graph.initializer:
                        inner[tensor.name] = _of_tensor(tensor, is_read=True)
                    yield from self._nodes(graph, number, inner)


def _key_of(attribute: AttributeProto) -> Any:
    """Returns what tells an attribute from others; of large tensors and of graphs only what they are."""
    kind = attribute.type
    if kind in _PLAIN or (kind == AttributeProto.TENSOR and attribute.ByteSize() < _SMALL):
        return attribute.SerializeToString()
    return attribute.name, kind, *attribute.t.dims


def of_type(kind: TypeProto) -> Known:
    """Returns what a stated type makes certain."""
    dims = None
    if kind.tensor_type.HasField("shape"):
        sizes = [size(dim) for dim in kind.tensor_type.shape.dim]
        dims = tuple([number if isinstance(number, int) else None for number in sizes])
    return Known(type_str(kind), dims)


def _of_tensor(tensor: TensorProto, *, is_read: bool) -> Known:
    dims = tuple(tensor.dims)
    elements = None
    if is_read and tensor.data_type in _INTEGERS and len(dims) < 2 and (not dims or 0 <= dims[0] <= _SHORT):
        elements = _elements(tensor)
    return Known(type_str(tensor_type(tensor.data_type)), dims, elements)


def _elements(tensor: TensorProto) -> tuple[int, ...] | None:
    if tensor.data_location == TensorProto.EXTERNAL:
        return None
    return tuple(int(one) for one in tensors.elements_of(tensor).ravel())


def _of_constant(node: NodeProto) -> Known | None:
    """Returns what is certain of the value of a Constant node, None if that is nothing."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            return _of_tensor(attribute.t, is_read=True) if attribute.t.dims or attribute.t.ByteSize() < 1024 else None
        if attribute.name == "value_ints":
            return Known("tensor(int64)", (len(attribute.ints),), tuple(attribute.ints[:]))
        if attribute.name == "value_int":
            return Known("tensor(int64)", (), (attribute.i,))
    return None
