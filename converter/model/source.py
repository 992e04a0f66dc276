# SPDX-License-Identifier: Apache-2.0
"""The model that is to be converted, as it was opened. Planning reads it and never changes it."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import every_node
from onnx_convert.model.opset_imports import OpsetImports, Restamping
from onnx_convert.model.validation import ModelIndex, examine
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.spec.opsets import Imports


class SourceModel:
    """A message with what is asked about it as a whole. `name` is how messages of errors call it, mostly a path.

    `missing` tells what is wrong with data files that cannot be read, by location, where that is allowed; `restamping`
    which opsets it is read at although its stamp says others.
    InvalidModelError, from `imports` and `index`, says what makes the model meaningless.
    """

    def __init__(self, proto: ModelProto, name: str) -> None:
        self.proto = proto
        self.name = name
        self.missing: dict[str, str] = {}
        self.restamping: Restamping | None = None

    def read_at(self, stamps: Imports) -> None:
        """Writes into the message, before anything is asked about it, the opsets that it is to be read at although its
        stamp says others."""
        self.restamping = Restamping(self.proto, stamps)

    @cached_property
    def imports(self) -> OpsetImports:
        """The opsets that the model and its functions import."""
        return OpsetImports(self.proto, self.name)

    @cached_property
    def index(self) -> ModelIndex:
        """The contents of the model, found by one walk over all nodes."""
        return examine(self.proto, self.name, self.payload)

    @cached_property
    def functions(self) -> dict[FunctionKey, FunctionProto]:
        """The model-local functions."""
        return {function_key(function): function for function in self.proto.functions}

    def payload(self, tensor: TensorProto) -> int | None:  # noqa: ARG002 - a file knows
        """Returns how many bytes of raw data a tensor has in the file it comes from: None if it holds what it has, or
        below 0 if they are not raw: how many there are, -1 if nobody knows."""
        return None

    def texts(self, value: Any) -> Any:
        """Returns the value of an attribute with the long texts that a file holds."""
        return value

    @cached_property
    def foreign(self) -> dict[str, Counter[str]]:
        """The number of nodes of each operator, by domain, of the domains that are neither of ONNX nor of the
        model's own functions."""
        own = {key[:2] for key in self.functions}
        operators = {(opsets.canonical_domain(domain), operator) for domain, operator in self.index.operators}
        wanted = {key for key in operators if not opsets.is_known(key[0])} - own
        counts: dict[str, Counter[str]] = {}
        for node in self._every_node() if wanted else ():
            if (node.domain, node.op_type) in wanted:
                counts.setdefault(node.domain, Counter())[node.op_type] += 1
        return counts

    def _every_node(self) -> Iterator[NodeProto]:
        bodies: list[GraphProto | FunctionProto] = [self.proto.graph, *self.proto.functions]
        for training in self.proto.training_info:
            bodies += [training.initialization, training.algorithm]
        for body in bodies:
            yield from every_node(body)

    def elements(self, tensor: TensorProto) -> TensorProto:
        """Returns a tensor of the model with its elements; as it is if they are external to a model in memory, which
        does not tell where they are."""
        return tensor
