# SPDX-License-Identifier: Apache-2.0
"""One rewrite of one node, until it is known to succeed: what it writes, and what is known while it does.

A draft answers questions about its own values itself and asks the graph about all others. Nothing of it reaches the
graph before it is committed, so one that is refused leaves no trace (but that its names are not given again).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_convert.rewrite.written import WrittenValues
from onnx_convert.spec import opsets
from onnx_convert.spec.types import has_shape, tensor_type, type_str

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy
    from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto

    from onnx_convert.analysis.facts import Facts
    from onnx_convert.rewrite.constants import Constants
    from onnx_convert.rewrite.context import Session
    from onnx_convert.rewrite.values import Producer, ValueFacts
    from onnx_convert.spec.opsets import Imports

    Array = numpy.ndarray[Any, Any]


class Draft(WrittenValues):
    """The draft that one rewrite writes. `surroundings` answer for all values that are not its own; `subject` are the
    inputs and outputs of the node that is rewritten, about which they are asked even once the rewrite makes them
    anew."""

    def __init__(
        self,
        surroundings: ValueFacts,
        session: Session,
        imports: Imports,
        constants: Constants,
        subject: Collection[str] = (),
        path: str = "",
        *,
        in_function: bool = False,
    ) -> None:
        super().__init__(imports, session.read)
        self.session = session
        self.constants = constants
        self.in_function = in_function  # which has no initializers
        self.path = path  # to the graph that the node stands in
        self.stale_value_info: set[str] = set()
        self.domains: dict[str, int] = {}  # of new nodes that stay at an opset of their own
        self.shared: dict[str, tuple[Array, str]] = {}  # constants, perhaps only on the way, and the names they wanted
        self.states_types = False  # whether types were stated that do not follow from the nodes
        self._surroundings = surroundings
        self._subject = subject
        self._own: set[str] = set()  # new values, of which the surroundings know nothing

    # ---- writing

    def fresh(self, wanted: str) -> str:
        """Returns a name that is nowhere in the model yet."""
        return self.session.names.fresh(wanted)

    def write(self, node: NodeProto, opset: int) -> None:
        """Takes note of a new node; its outputs are inferred when somebody asks."""
        super().write(node, opset)
        self._own.update(name for name in node.output if name not in self._subject)

    def arrive(self, node: NodeProto, opset: int) -> None:
        """Takes note that a new node has come to the target. If that is up, inference finds more there: what is asked
        from now on is answered as after a replay, which goes there at once."""
        for name in node.output:
            if name in self.written:
                made, before = self.written[name]
                if made is node and before < opset:
                    self.written[name] = (node, opset)

    def rename(self, old: str, new: str) -> None:
        """Takes note that a new value takes over the name of one of the subject's."""
        if new in self.written:
            self.earlier.setdefault(new, self.written[new])
        self.written[new] = self.written.pop(old)
        self.types.pop(new, None)
        known = self.types.pop(old, None)
        if has_shape(known):
            self.types[new] = known

    def state_type(self, name: str, kind: TypeProto) -> None:
        """States the type of a new value, which inference need not be asked for."""
        self._own.add(name)
        self.types[name] = kind
        self.states_types = True

    def share(self, array: Array, hint: str) -> str:
        """Returns the name of a constant with these elements; it is named after the hint if there was none."""
        name = self.constants.share(array, hint)
        self.shared.setdefault(name, (array, hint))
        return name

    def inner(self, imports: Imports) -> Draft:
        """Returns a draft for a new graph inside the one at hand, whose values it can see."""
        return Draft(self, self.session, imports, self.session.constants_inside(self.constants))

    def own_constants(self) -> list[TensorProto]:
        """Returns the constants that a graph made by this inner draft has to hold."""
        return [] if self.session.ir_after <= opsets.INPUTS_ONLY else self.constants.all_tensors()

    # ---- questions about values

    def _constant_tensor(self, name: str) -> TensorProto | None:
        return self.constants.tensor(name) if name not in self._subject else None

    def _known_type(self, name: str) -> TypeProto | None:
        tensor = self._constant_tensor(name)
        if tensor is not None:
            return tensor_type(tensor.data_type, tensor.dims)
        return self._surroundings.type_of(name) if name not in self._own else None

    def _known_type_str(self, name: str) -> str:
        tensor = self._constant_tensor(name)
        if tensor is not None:
            return type_str(tensor_type(tensor.data_type))
        return self._surroundings.type_str(name) if name not in self._own else ""

    def _known_constant(self, name: str) -> Array | None:
        tensor = self._constant_tensor(name)
        if tensor is not None:
            return self._elements(tensor)
        return self._surroundings.constant(name) if name not in self._own else None

    def _known_foldable(self, name: str) -> Array | None:
        if name in self._own or self._constant_tensor(name) is not None:
            return self._known_constant(name)
        return self._surroundings.foldable(name)

    def _known_literal(self, name: str) -> TensorProto | None:
        tensor = self._constant_tensor(name)
        if tensor is not None:
            return self._small(tensor)
        return self._surroundings.literal(name) if name not in self._own else None

    def is_read(self, name: str) -> bool:
        return self._is_new(name) or self._surroundings.is_read(name)

    # ---- questions about the graph

    def is_of_model(self, name: str) -> bool:
        return not self._is_new(name) and self._surroundings.is_of_model(name)

    def producer(self, name: str) -> Producer | None:
        return None if self._is_new(name) else self._surroundings.producer(name)

    def _is_new(self, name: str) -> bool:
        return name in self._own or self._constant_tensor(name) is not None

    def graph(self) -> GraphProto | FunctionProto:
        return self._surroundings.graph()

    def types_within(self, node: NodeProto, attribute: str) -> Facts:
        return self._surroundings.types_within(node, attribute)

    def read(self, tensor: TensorProto) -> TensorProto:
        """Returns a tensor of the model with its elements."""
        return self._read(tensor)
