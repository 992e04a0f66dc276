# SPDX-License-Identifier: Apache-2.0
"""Validates a source, once, before anything trusts it: afterwards adapters may assume what the schemas say.

Structure first (every value is made once and somewhere, names are text), then tensors and stated types, then the nodes
by kind: the opset they fit, their attributes, and ranks and lengths where these are certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import name_of
from onnx_convert.spec import opsets
from onnx_convert.validation import attributes, shapes, stamp
from onnx_convert.validation.kinds import Kinds

if TYPE_CHECKING:
    from onnx import NodeProto

    from onnx_convert.model.source import SourceModel


def validate(source: SourceModel) -> None:
    """Raises InvalidModelError, which names the node, unless the model is what its stamp says as far as can be told
    without inference."""
    assert source.index is not None  # the structure, tensors and stated types
    called = {(opsets.canonical_domain(function.domain), function.name) for function in source.proto.functions}
    kinds = Kinds(source)
    stamp.judge(kinds.cases, kinds.nodes, called, source.name)
    for node in kinds.constants:
        _raise(node, attributes.fault(node, source.imports.everywhere.get(opsets.AI_ONNX, 1), ""), source.name)
    for case in kinds.cases.values():
        node, domain = case.node, case.domain
        if (domain, node.op_type) in called or opsets.schema_at(node.op_type, case.opset, domain) is None:
            continue
        _raise(node, attributes.fault(node, case.opset, domain), source.name)
        if domain == opsets.AI_ONNX and node.op_type in shapes.RULES:
            _raise(node, shapes.fault(case.use), source.name)


def _raise(node: NodeProto, fault: str, where: str) -> None:
    if fault:
        raise InvalidModelError(f"{node.op_type} {name_of(node)!r} is not valid: {fault}", where=where)
