# SPDX-License-Identifier: Apache-2.0
"""Empty names at the end of a node's inputs and outputs: parts that are left out, and say so.

They mean what an end before them means, but whoever counts takes them for parts that are there: onnx's inference of
some operators, and easily an adapter. So who asks about a node is given it without them; a node that stays keeps them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from onnx import NodeProto

from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANY_NUMBER: Final = 2**31 - 1


@lru_cache(maxsize=None)
def _may_end(operator: str, domain: str) -> tuple[bool, bool]:
    """Returns whether inputs and outputs at the end may be left out: those of an operator that takes any number are
    counted, and what a function of the model or an unknown operator makes of them is its own affair."""
    versions = opsets.history(operator, domain)
    schema = opsets.schema_at(operator, versions[-1], domain) if versions else None
    if schema is None:
        return False, False
    return schema.max_input < _ANY_NUMBER, schema.max_output < _ANY_NUMBER


def count(names: Sequence[str]) -> int:
    """Returns how many names there are up to the last one that is not empty."""
    last = len(names)
    while last and not names[last - 1]:
        last -= 1
    return last


def lengths(node: NodeProto) -> tuple[int, int]:
    """Returns how many inputs and outputs of a node there are without those that are left out at the end."""
    inputs, outputs = len(node.input), len(node.output)
    if (inputs and not node.input[-1]) or (outputs and not node.output[-1]):
        inputs_end, outputs_end = _may_end(node.op_type, opsets.canonical_domain(node.domain))
        inputs = count(node.input) if inputs_end else inputs
        outputs = count(node.output) if outputs_end else outputs
    return inputs, outputs


def without(node: NodeProto) -> NodeProto:
    """Returns the node, if there is anything at its end that is left out a copy of it that ends before."""
    inputs, outputs = lengths(node)
    if inputs == len(node.input) and outputs == len(node.output):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.input[inputs:]
    del copy.output[outputs:]
    return copy
