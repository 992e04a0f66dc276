# SPDX-License-Identifier: Apache-2.0
"""The state that all graphs of one conversion share: the names that are taken, how tensors are read, what is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_convert.rewrite.constants import Constants
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import TensorProto

    from onnx_convert.model.names import Names


class Session:
    """The state that all scopes of one conversion share. `find_read` returns the names that the source uses; `texts`
    completes the value of an attribute that was not read as a whole."""

    def __init__(
        self,
        ir_before: int,
        ir_after: int,
        names: Names,
        read: Callable[[TensorProto], TensorProto],
        find_read: Callable[[], set[str]],
        texts: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.ir_before = ir_before
        self.ir_after = ir_after
        self.names = names
        self.read = read
        self.texts = texts
        self.took_ir3_initializer = False
        self._find_read = find_read
        self._read_names: set[str] | None = None

    @property
    def read_names(self) -> set[str]:
        """Every name that a node or a graph output of the source uses."""
        if self._read_names is None:
            self._read_names = self._find_read()
        return self._read_names

    def constants_inside(self, outer: Constants) -> Constants:
        """Returns where new constants of a subgraph go: into the subgraph; where initializers are inputs, which only
        the main graph has, to the graph around it."""
        return outer if self.ir_after <= opsets.INPUTS_ONLY else Constants(self.names)
