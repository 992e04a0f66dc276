# SPDX-License-Identifier: Apache-2.0
"""One use of an operator: what is certain of a node's inputs without inference, and its attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx_convert.model import trailing
from onnx_convert.model.attributes import attribute_value
from onnx_convert.model.kinds import PLAIN, Known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onnx import NodeProto

    from onnx_convert.model.kinds import Dims

UNKNOWN: Final = Known()
"""Stands for an input of which nothing is known."""


class Use(NamedTuple):
    """A node with what is certain of its inputs (None for one that is left out, none of them at the end), how many
    outputs it has, and its attributes as Python values."""

    operator: str
    opset: int
    inputs: Sequence[Known | None]
    outputs: int
    given: Mapping[str, Any]

    def dims(self, index: int) -> Dims | None:
        """Returns the dimensions of an input, None if they are not known."""
        known = self.inputs[index] if index < len(self.inputs) else None
        return known.dims if known is not None else None

    def elements(self, index: int) -> tuple[int, ...] | None:
        """Returns the elements of an input, None if they are not known or the input is left out."""
        known = self.inputs[index] if index < len(self.inputs) else None
        return known.elements if known is not None else None

    def length(self, index: int) -> int | None:
        """Returns the size of an input that is a list, None if it is not known."""
        dims = self.dims(index)
        return dims[0] if dims is not None and len(dims) == 1 else None

    def integers(self, name: str, index: int) -> tuple[int, ...] | None:
        """Returns integers that are an attribute in some versions and an input in others."""
        found = self.given.get(name)
        return tuple(found) if isinstance(found, list) else self.elements(index)


def use_of(node: NodeProto, opset: int, known: Callable[[str], Known]) -> Use:
    """Returns the use that a node is, given what is known of a value."""
    inputs, outputs = trailing.lengths(node)
    given = {a.name: attribute_value(a) for a in node.attribute if a.type in PLAIN and a.type and not a.ref_attr_name}
    return Use(node.op_type, opset, [known(name) if name else None for name in node.input[:inputs]], outputs, given)


def has_references(node: NodeProto) -> bool:
    """Returns whether an attribute of a node is told by the call of the function that it stands in."""
    return any(attribute.ref_attr_name for attribute in node.attribute)
