# SPDX-License-Identifier: Apache-2.0
"""Holds a node with what is known of the values that it uses, as functions of shapes are asked with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx_convert.analysis.propagation import Size, Vector, dims_of
from onnx_convert.model.attributes import given

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import NodeProto, TypeProto


Dims = list[Size] | None  # of a tensor, None if its rank is not known
END: Final = 2**31 - 1  # a bound that is meant to be the end of any axis


class Call(NamedTuple):
    """A node, the version of its operator, and what is known of the values that it uses."""

    node: NodeProto
    version: int
    type_of: Callable[[str], TypeProto | None]
    elements: Callable[[str], Vector | None]

    @property
    def given(self) -> dict[str, Any]:
        """The attributes that the node has."""
        return given(self.node)

    @property
    def outputs(self) -> int:
        """The number of outputs, those left out included."""
        return len(self.node.output)

    def has(self, index: int) -> bool:
        """Returns whether an input is given."""
        return index < len(self.node.input) and bool(self.node.input[index])

    def dims(self, index: int) -> Dims:
        """Returns the dimensions of an input."""
        return dims_of(self.type_of(self.node.input[index])) if self.has(index) else None

    def vector(self, index: int) -> Vector | None:
        """Returns what is known of the elements of an input."""
        return self.elements(self.node.input[index]) if self.has(index) else None

    def numbers(self, index: int) -> list[int] | None:
        """Returns the elements of an input, if all are known."""
        vector = self.vector(index)
        return vector.numbers if vector is not None else None

    def integers(self, name: str, index: int, since: int) -> list[int] | None:
        """Returns integers that are an attribute up to a version and an input from it on, if they are known."""
        return self.given.get(name) if self.version < since else self.numbers(index)


def unknown(count: int) -> list[Size]:
    """Returns as many unknown dimensions."""
    return [None] * count


def size_of(one: Size) -> Size:
    """Returns the size that an element of a shape stands for: a negative one stands for none."""
    return None if isinstance(one, int) and one < 0 else one


def stretched(a: Size, b: Size) -> Size:
    """Returns the size that two have in common where a 1 is stretched."""
    if a == 1:
        return b
    if b in (1, a):
        return a
    return a if isinstance(a, int) else b if isinstance(b, int) else None
