# SPDX-License-Identifier: Apache-2.0
"""Model-local functions: what identifies one, which node calls it, and in which order they depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import every_node
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import FunctionProto, NodeProto


FunctionKey = tuple[str, str, str]  # domain, name, overload


def function_key(function: FunctionProto) -> FunctionKey:
    """What identifies a model-local function: domain, name and overload (older onnx has no overload)."""
    return opsets.canonical_domain(function.domain), function.name, getattr(function, "overload", "")


def key_of(node: NodeProto) -> FunctionKey:
    """The key of the function that a node would call."""
    return opsets.canonical_domain(node.domain), node.op_type, getattr(node, "overload", "")


def callees_first(functions: Mapping[FunctionKey, FunctionProto]) -> list[FunctionKey]:
    """The functions in an order in which each comes after those that it calls; InvalidModelError for a recursion."""
    order: dict[FunctionKey, None] = {}
    entered: set[FunctionKey] = set()

    def visit(key: FunctionKey) -> None:
        if key in entered:
            if key not in order:
                raise InvalidModelError(f"function {key[1]} calls itself")
            return
        entered.add(key)
        for node in every_node(functions[key]):
            callee = key_of(node)
            if callee in functions:
                visit(callee)
        order[key] = None

    for key in functions:
        visit(key)
    return list(order)
