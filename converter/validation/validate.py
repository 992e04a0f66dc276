# SPDX-License-Identifier: Apache-2.0
"""Validates a source, once, before anything trusts it: afterwards adapters may assume what the schemas say.

Structure first (every value is made once and somewhere, names are text), then tensors and stated types, then the nodes
by kind: the opset they fit, their attributes, and ranks and lengths where these are certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.analysis import canary, view
from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import name_of
from onnx_convert.spec import opsets
from onnx_convert.validation import attributes, shapes, stamp, uses
from onnx_convert.validation.cases import cases_of

_SUSPICIOUS: Final = range(2**31 + 1, 2**63 - 2**33)

if TYPE_CHECKING:
    from onnx import NodeProto

    from onnx_convert.model.source import SourceModel
    from onnx_convert.validation.cases import Case


def validate(source: SourceModel) -> None:
    """Raises InvalidModelError, which names the node, unless the model is what its stamp says as far as can be told
    without inference."""
    _ = source.index  # one walk over structure, tensors and stated types, which raises
    called = {(opsets.canonical_domain(function.domain), function.name) for function in source.proto.functions}
    cases = cases_of(source)
    stamp.judge(cases, source.proto, called, source.name, declared=source.restamping is not None)
    for node in source.index.kinds.constants:
        _raise(node, attributes.fault(node, source.imports.everywhere.get(opsets.AI_ONNX, 1), ""), source.name)
    suspicious = False
    for case in cases:
        node, domain = case.node, case.domain
        suspicious = suspicious or _is_suspicious(case)
        if (domain, node.op_type) in called or opsets.schema_at(node.op_type, case.opset, domain) is None:
            continue
        _raise(node, attributes.fault(node, case.opset, domain), source.name)
        if shapes.has_rules(node.op_type, domain) and not uses.has_references(node):
            _raise(node, shapes.fault(case.use), source.name)
    if suspicious and not canary.survives(view.of_source(source).serialised()):
        raise InvalidModelError("onnx's own check does not survive this model", where=source.name)


def _is_suspicious(case: Case) -> bool:
    """Tells whether a node has a size or a number by which C++ code may overflow; those that stand for the end of an
    axis have always been fed to it."""
    if case.domain not in (opsets.AI_ONNX, opsets.AI_ONNX_ML):
        return False
    use = case.use
    numbers = [number for known in use.inputs if known for number in (*(known.dims or ()), *(known.elements or ()))]
    for value in use.given.values():
        numbers += value if isinstance(value, list) else [value]
    return any(isinstance(number, int) and abs(number) in _SUSPICIOUS for number in numbers)


def _raise(node: NodeProto, fault: str, where: str) -> None:
    if fault:
        raise InvalidModelError(f"{node.op_type} {name_of(node)!r} is not valid: {fault}", where=where)
