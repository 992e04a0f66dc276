# SPDX-License-Identifier: Apache-2.0
"""Answers what an adapter asks: about the node that it carries, and what is known of the values around it.

Asking declares the need. `node.rank(0)` is an answer or a refusal with a remedy; `node.input(0).rank` is an answer or
None, for an adapter that has a run-time form as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import onnx
from onnx import AttributeProto

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.attributes import KIND_NUMBERS, attribute_value
from onnx_convert.model.graphs import name_of
from onnx_convert.model.tensors import elements_of
from onnx_convert.spec import opsets
from onnx_convert.spec.types import size

if TYPE_CHECKING:
    import numpy
    from onnx import FunctionProto, GraphProto, NodeProto, TypeProto

    from onnx_convert.analysis.facts import Facts
    from onnx_convert.rewrite.draft import Draft


T = TypeVar("T")

Dim = int | str | None
"""A dimension: a number, the name of a symbol, or None for one of which nothing is known."""

Shape = tuple[Dim, ...]

_STATE_TYPE: Final = "state its type in the model's value_info"
_LESS: Final = "no runtime would be served by that; choose smaller sizes"
_GIVE_SHAPES: Final = "give the model's inputs shapes"
_FOLD: Final = "make it a constant (fold constants first), or choose an opset on this side of the boundary"


def _graspable(number: Dim) -> Dim:
    """Returns a dimension as adapters see it: they count through axes, and one of millions counts as unknown."""
    return None if isinstance(number, int) and number > LONGEST else number


LONGEST: Final = 1 << 20
"""Elements of an axis whose size adapters are told, and of a list that they write."""

LARGEST: Final = 1 << 24
"""Elements of a constant that adapters write."""


class Refuse(Exception):
    """Raised by an adapter: this node cannot cross with the same meaning.

    `unknown` says that a fact is missing which the caller of an enclosing function may know; the planner then inlines
    the function at its calls and asks again there. `boundary` and `direction` tell where the node was refused; without
    a direction `boundary` is the opset down to which the node could have been carried. `code` is one of
    `onnx_convert.report.CODES`.
    """

    def __init__(
        self,
        reason: str,
        remedy: str = "",
        *,
        code: str = "no-form",
        unknown: bool = False,
        boundary: int = 0,
        direction: str = "",
    ) -> None:
        self.code = code
        self.boundary = boundary
        self.direction = direction
        self.reason = reason
        self.remedy = remedy
        self.unknown = unknown
        super().__init__(reason)


class Value:
    """A value of the graph, by name. Its properties are what is known of it, None where nothing is."""

    __slots__ = ("_draft", "name")

    def __init__(self, name: str, draft: Draft) -> None:
        self.name = name
        self._draft = draft

    def __repr__(self) -> str:
        return f"Value({self.name!r})"

    @property
    def type(self) -> TypeProto | None:
        """Everything known of the type, as the message that ONNX uses."""
        return self._draft.type_of(self.name)

    @property
    def dtype(self) -> int | None:
        """The element type of a tensor, a TensorProto.DataType."""
        known = self.type
        if known is None or not known.HasField("tensor_type"):
            return None
        return known.tensor_type.elem_type or None

    @property
    def shape(self) -> Shape | None:
        """The dimensions of a tensor: a number, the name of a symbol, or None each."""
        known = self.type
        if known is None or not known.HasField("tensor_type") or not known.tensor_type.HasField("shape"):
            return None
        return tuple(_graspable(size(dim)) for dim in known.tensor_type.shape.dim)

    @property
    def rank(self) -> int | None:
        """The number of dimensions of a tensor."""
        known = self.type
        if known is None or not known.HasField("tensor_type") or not known.tensor_type.HasField("shape"):
            return None
        return len(known.tensor_type.shape.dim)

    @property
    def constant(self) -> numpy.ndarray[Any, Any] | None:
        """The elements, if they are the same at every run: an initializer, a Constant, or folded from such."""
        return self._draft.constant(self.name)

    @property
    def producer(self) -> Node | None:
        """The node of the model that makes it, in its graph or one around it. None for an input, an initializer, and
        what an adapter wrote."""
        found = self._draft.producer(self.name)
        return Node(found.node, self._draft, found.opset) if found is not None else None

    @property
    def is_tensor(self) -> bool:
        """False only if the value is known to be a sequence, an optional or a map."""
        known = self.type
        return known is None or known.WhichOneof("value") in (None, "tensor_type")


class Node:
    """The node that is being carried, at the opset that it stands at now."""

    __slots__ = ("_attributes", "draft", "opset", "proto")

    def __init__(self, proto: NodeProto, draft: Draft, opset: int) -> None:
        self.proto = proto
        self.draft = draft
        self.opset = opset
        self._attributes: dict[str, AttributeProto] | None = None

    @property
    def operator(self) -> str:
        """The operator's name, `op_type` in the message."""
        return self.proto.op_type

    @property
    def domain(self) -> str:
        """The operator's domain, "" for ai.onnx."""
        return opsets.canonical_domain(self.proto.domain)

    @property
    def schema(self) -> onnx.defs.OpSchema:
        """The operator's schema at the opset that the node stands at."""
        schema = opsets.schema_at(self.operator, self.opset, self.domain)
        assert schema is not None
        return schema

    # ---- inputs and outputs

    def input(self, index: int) -> Value:
        """Returns the value at an input; a refusal if it is left out."""
        value = self.optional_input(index)
        if value is None:
            self.invalid(f"input {self._formal(index)} is missing", "add the input")
        return value

    def optional_input(self, index: int) -> Value | None:
        """Returns the value at an input, None if it is left out."""
        names = self.proto.input
        return Value(names[index], self.draft) if index < len(names) and names[index] else None

    @property
    def inputs(self) -> list[Value | None]:
        """Every input in order, None for one that is left out."""
        return [Value(name, self.draft) if name else None for name in self.proto.input]

    def output(self, index: int = 0) -> Value:
        """Returns the value at an output, whose type may be known from the model."""
        return Value(self.proto.output[index], self.draft)

    @property
    def in_function(self) -> bool:
        """Whether the node stands in a function body, which has no initializers."""
        return self.draft.in_function

    @property
    def graph(self) -> GraphProto | FunctionProto:
        """The graph or function body that the node stands in."""
        return self.draft.graph()

    def within(self, attribute: str) -> Facts:
        """Returns the types of the values in a subgraph that the node holds."""
        return self.draft.types_within(self.proto, attribute)

    def uses_output(self, index: int) -> bool:
        """Returns whether an output is there and named."""
        return index < len(self.proto.output) and bool(self.proto.output[index])

    def is_read(self, index: int) -> bool:
        """Returns whether an output is used by any node. If not, an adapter may return None for it."""
        return self.uses_output(index) and self.draft.is_read(self.proto.output[index])

    # ---- facts that are needed

    def rank(self, index: int) -> int:
        """Returns the rank of an input; a refusal if it is unknown."""
        return self._need(self.input(index).rank, index, "rank", _GIVE_SHAPES)

    def shape(self, index: int) -> Shape:
        """Returns the dimensions of an input, such as (2, "N", None); a refusal if the rank is unknown."""
        return self._need(self.input(index).shape, index, "shape", _GIVE_SHAPES)

    def dtype(self, index: int) -> int:
        """Returns the element type of an input, a TensorProto.DataType; a refusal if it is unknown."""
        return self._need(self.input(index).dtype, index, "dtype", _STATE_TYPE)

    def constant(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns the elements of an input; a refusal if they are computed at run time."""
        value = self.input(index).constant
        if value is None:
            name = self._formal(index)
            self.refuse(
                f"input {name} is computed at run time, and there is no form for that",
                _FOLD,
                code="needs-constant",
                unknown=True,
            )
        return value

    def _need(self, fact: T | None, index: int, what: str, remedy: str) -> T:
        if fact is None:
            name = self.proto.input[index]
            if remedy == _GIVE_SHAPES and self.draft.is_of_model(name):
                remedy += f", or state the shape of {name!r} in its value_info"
            reason = f"the {what} of input {self._formal(index)} is not known"
            self.refuse(reason, remedy, code=f"needs-{what}", unknown=True)
        return fact

    def _formal(self, index: int) -> str:
        formal = self.schema.inputs[min(index, len(self.schema.inputs) - 1)].name
        actual = self.proto.input[index] if index < len(self.proto.input) else ""
        return f"{formal} ({actual!r})" if actual and self.draft.is_of_model(actual) else formal

    # ---- attributes

    def _find(self, name: str) -> AttributeProto | None:
        if self._attributes is None:
            self._attributes = {attribute.name: attribute for attribute in self.proto.attribute}
        return self._attributes.get(name)

    def has(self, name: str) -> bool:
        """Returns whether the node spells out an attribute."""
        return self._find(name) is not None

    def refers(self, name: str) -> bool:
        """Returns whether an attribute is only a reference to one of the enclosing function."""
        attribute = self._find(name)
        return attribute is not None and bool(attribute.ref_attr_name)

    def attribute(self, name: str) -> AttributeProto | None:
        """Returns an attribute as the message that the node holds, None if it does not spell it out."""
        return self._find(name)

    def attr(self, name: str, default: Any = None) -> Any:
        """Returns the value of an attribute: what the node says, else `default`, else the schema's default, else None.

        A refusal inside a function whose attribute it refers to: the calls know.
        """
        attribute = self._find(name)
        if attribute is None:
            if default is not None:
                return default
            formal = opsets.attributes_of(self.operator, self.opset, self.domain).get(name)
            if formal is None or formal.default_value.type == AttributeProto.UNDEFINED:
                return None
            attribute = formal.default_value
        formal = opsets.attributes_of(self.operator, self.opset, self.domain).get(name)
        if formal is not None and attribute.type and attribute.type != KIND_NUMBERS[formal.type]:
            kinds = [AttributeProto.AttributeType.Name(n) for n in (attribute.type, KIND_NUMBERS[formal.type])]
            where = f"{self.operator} {name_of(self.proto)!r}"
            raise InvalidModelError(f"attribute {name} is of type {kinds[0]}, it has to be {kinds[1]}", where=where)
        if attribute.ref_attr_name:
            self.refuse(
                f"attribute {name} is a reference to the function's attribute {attribute.ref_attr_name}",
                "call the function with the attribute, or inline it",
                code="needs-attribute",
                unknown=True,
            )
        value = self.draft.session.texts(attribute_value(attribute))
        if value == "" and formal is not None and formal.default_value.type == AttributeProto.STRING:
            return attribute_value(formal.default_value)  # which some write for the default
        return value

    def tensor(self, name: str) -> numpy.ndarray[Any, Any]:
        """Returns the elements of a TENSOR attribute that has to be there."""
        return elements_of(self.draft.read(self.attr(name)))

    def axis(self, number: int, rank: int) -> int:
        """Returns an axis counted from the front; a refusal if a value of the rank has no such axis."""
        if not -rank <= number < rank and (rank or number not in (0, -1)):
            self.invalid(f"a value of rank {rank} has no axis {number}", "correct the axis")
        return number % max(rank, 1)

    def limit(self, *sizes: int, most: int = LONGEST) -> None:
        """Refuses if the product of some numbers, by which the adapter goes on to count, is too large."""
        product = 1
        for number in sizes:
            product *= max(number, 0)
        if product > most:
            self.refuse(f"what replaces it is too large: a list of {product} elements", _LESS, code="too-large")

    def refuse(self, reason: str, remedy: str = "", *, code: str = "", unknown: bool = False) -> NoReturn:
        """Refuses the node: says why it cannot cross, and what the user can do; with one of `report.CODES` if the
        default does not fit."""
        raise Refuse(reason, remedy, code=code or ("needs-fact" if unknown else "no-form"), unknown=unknown)

    def invalid(self, reason: str, correction: str = "") -> NoReturn:
        """Refuses the node because the specification does not allow it; says why, and how to correct the model."""
        verdict = "the model is not valid"
        self.refuse(reason, f"{verdict}: {correction}" if correction else verdict, code="invalid-model")
