# SPDX-License-Identifier: Apache-2.0
"""The questions that a rewrite may ask about its surroundings: about values, and about the graph they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from onnx_convert.model.tensors import elements_of

if TYPE_CHECKING:
    import numpy
    from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto

    from onnx_convert.analysis.facts import Facts

    Array = numpy.ndarray[Any, Any]

Content = tuple[str, tuple[int, ...], bytes | tuple[Any, ...]]  # dtype, shape, elements


class Producer(NamedTuple):
    """A node of the source, and the opset of its domain that it is written for (0 if the model does not say)."""

    node: NodeProto
    opset: int


class ValueFacts(Protocol):
    """The facts that are known of the values that one graph can see, those of the graphs around it included."""

    def type_of(self, name: str) -> TypeProto | None:
        """Returns everything known of a value's type, None if nothing is."""

    def type_str(self, name: str) -> str:
        """Returns a value's type as schemas spell it, "tensor(float)"; "" if it is not known.

        The type of a value that a rewrite wrote mostly follows from the schema: its shape need not be inferred as well.
        """

    def constant(self, name: str) -> Array | None:
        """Returns the elements of a value that is the same at every run, None for any other."""

    def foldable(self, name: str) -> Array | None:
        """Returns the elements of a constant that is small enough to be folded; a large tensor is not even read."""

    def literal(self, name: str) -> TensorProto | None:
        """Returns a small tensor that the model spells out, in an initializer or a Constant node; None for others."""

    def is_read(self, name: str) -> bool:
        """Returns whether a value is used by any node, or is an output of a graph; always true of a new one."""

    def is_of_model(self, name: str) -> bool:
        """Returns whether a value is one of the source's own, which people find in their model."""

    def producer(self, name: str) -> Producer | None:
        """Returns the source node that makes a value; None for an input, an initializer, and a new value."""

    def graph(self) -> GraphProto | FunctionProto:
        """Returns the graph or function body itself, as the source has it."""

    def types_within(self, node: NodeProto, attribute: str) -> Facts:
        """Returns the types of the values in a subgraph that a node of this graph holds."""


def content_of(array: Array) -> Content:
    """Returns dtype, shape and elements of an array as something to compare."""
    return array.dtype.str, array.shape, elements_to_compare(array)


def content_of_tensor(tensor: TensorProto) -> Content:
    """Returns dtype, shape and elements of a tensor as something to compare."""
    return content_of(elements_of(tensor))


def elements_to_compare(array: Array) -> bytes | tuple[Any, ...]:
    """Returns the elements of an array; the bytes of strings would be their addresses."""
    return tuple(array.ravel()) if array.dtype.hasobject else array.tobytes()
