# SPDX-License-Identifier: Apache-2.0
"""One use of an operator: what is certain of a node's inputs without inference, and its attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx_convert.model.kinds import Dims, Known


class Use(NamedTuple):
    """A node with what is certain of its inputs (None where nothing is), and its attributes as Python values."""

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
