# SPDX-License-Identifier: Apache-2.0
"""Bodies of Loop, If and Scan.

A body that an adapter writes from nothing is made by `op.graph`, which takes the types made here. One that goes around
the nodes of another body is a `Body`:

    body = Body(op, node.attr("body"))
    number = body.take("number", INT64)
    body.give(body.node("Identity", number), INT64, at=0)
    op.node("Loop", count, condition, start, body=body.graph)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper  # noqa: TID251  (graphs are messages)

if TYPE_CHECKING:
    from onnx_convert.adapter import Dim, Emitter

Graph = GraphProto
Type = TypeProto

# ---- types


def tensor_type(dtype: int, *sizes: Dim) -> Type:
    """Returns the type of a tensor with these dimensions; only numbers among them are stated."""
    kind = TypeProto(tensor_type=TypeProto.Tensor(elem_type=dtype))
    kind.tensor_type.shape.SetInParent()
    for size in sizes:
        kind.tensor_type.shape.dim.add(dim_value=size if isinstance(size, int) else None)
    return kind


def sequence_type(element: Type) -> Type:
    """Returns the type of a sequence."""
    return TypeProto(sequence_type=TypeProto.Sequence(elem_type=element))


def stacked_type(element: Type) -> Type:
    """Returns the type of any number of tensors along a new first axis."""
    kind = TypeProto()
    kind.CopyFrom(element)
    if element.tensor_type.HasField("shape"):
        del kind.tensor_type.shape.dim[:]
        kind.tensor_type.shape.dim.add()
        kind.tensor_type.shape.dim.extend(element.tensor_type.shape.dim)
    return kind


def element_type(stack: Type, axis: int | None = None) -> Type:
    """Returns the type of what is stacked along an axis of a value; of the value itself without one. Only numbers are
    stated of its dimensions: other names would be taken for those of the graph around."""
    kind = TypeProto()
    kind.CopyFrom(stack)
    if axis is not None:
        del kind.tensor_type.shape.dim[axis]
    for dim in kind.tensor_type.shape.dim:
        dim.ClearField("dim_param")
    return kind


# ---- bodies


class Body:
    """A graph in the making: a copy of another one to add to, or an empty one. Its values are names.

    The nodes that are copied have come to the target already and cross no boundary any more, so those that are added
    must mean the same in every opset. A type that is given as a number is a scalar of that dtype.
    """

    def __init__(self, op: Emitter, copied: Graph | None = None) -> None:
        self.graph = GraphProto()
        if copied is not None:
            self.graph.CopyFrom(copied)
        else:
            self.graph.name = self._fresh_of(op, "body")
        self._op = op
        self._ahead = 0

    @property
    def inputs(self) -> list[str]:
        """The names of what it takes."""
        return [value.name for value in self.graph.input]

    @property
    def outputs(self) -> list[str]:
        """The names of what it gives."""
        return [value.name for value in self.graph.output]

    def take(self, hint: str, kind: Type | int, at: int | None = None) -> str:
        """Adds an input, as the last one or at a place, and returns its name."""
        place = len(self.graph.input) if at is None else at
        self.graph.input.insert(place, ValueInfoProto(name=self.fresh(hint), type=_type(kind)))
        return str(self.graph.input[place].name)

    def give(self, name: str, kind: Type | int, at: int | None = None) -> None:
        """Makes a value an output, the last one or at a place."""
        place = len(self.graph.output) if at is None else at
        self.graph.output.insert(place, ValueInfoProto(name=name, type=_type(kind)))

    def put(self, place: int, name: str) -> None:
        """Makes another value, of the same type, the output at a place."""
        self.graph.output[place].name = name

    def drop_inputs(self, start: int = 0) -> list[str]:
        """Takes away the inputs from a place on, and returns their names: of values that added nodes have to make."""
        names = self.inputs[start:]
        del self.graph.input[start:]
        return names

    def node(self, operator: str, *inputs: str, to: str = "", ahead: bool = False, **attributes: Any) -> str:
        """Adds a node after all others, or `ahead` of those that were copied, and returns the name of its output: `to`
        if that is given. Attributes that are None are left out."""
        return self.nodes(operator, *inputs, to=[to or self.fresh(operator)], ahead=ahead, **attributes)[0]

    def nodes(self, operator: str, *inputs: str, to: list[str], ahead: bool = False, **attributes: Any) -> list[str]:
        """Adds a node with several outputs, `to`."""
        new = NodeProto(op_type=operator, input=inputs, output=to)
        new.attribute.extend(
            helper.make_attribute(name, value) for name, value in attributes.items() if value is not None
        )
        self.graph.node.insert(self._ahead if ahead else len(self.graph.node), new)
        self._ahead += ahead
        return to

    def constant(self, number: float, dtype: int, *sizes: int) -> str:
        """Adds a constant that holds one number."""
        return self.node("Constant", value=helper.make_tensor("", dtype, sizes, [number]))

    def zeros_like(self, name: str, dtype: int) -> str:
        """Adds nodes that make zeros in the shape of a value."""
        zero = helper.make_tensor("", dtype, [1], [0])
        return self.node("ConstantOfShape", self.node("Shape", name), value=zero)

    def fresh(self, hint: str) -> str:
        """Returns a name that is nowhere in the model."""
        return self._fresh_of(self._op, hint)

    @staticmethod
    def _fresh_of(op: Emitter, hint: str) -> str:
        return op.fresh(f"{op.subject.operator}/{hint}")


def _type(kind: Type | int) -> Type:
    return tensor_type(kind) if isinstance(kind, int) else kind
