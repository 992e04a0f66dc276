# SPDX-License-Identifier: Apache-2.0
"""Model-local functions: what identifies one, which node calls it, and in which order they depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import every_node
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import FunctionProto, GraphProto, NodeProto


FunctionKey = tuple[str, str, str]  # domain, name, overload


def function_key(function: FunctionProto) -> FunctionKey:
    """Returns what identifies a model-local function: domain, name and overload (older onnx has no overload)."""
    return opsets.canonical_domain(function.domain), function.name, getattr(function, "overload", "")


def key_of(node: NodeProto) -> FunctionKey:
    """Returns the key of the function that a node would call."""
    return opsets.canonical_domain(node.domain), node.op_type, getattr(node, "overload", "")


def callees_first(functions: Mapping[FunctionKey, FunctionProto]) -> list[FunctionKey]:
    """Returns the functions in an order in which each comes after those that it calls; InvalidModelError for a
    recursion."""
    order: dict[FunctionKey, None] = {}
    entered: set[FunctionKey] = set()
    calls = {key: _callees(function, functions) for key, function in functions.items()}
    for first in functions:
        path = [first] if first not in order else []
        while path:
            key = path[-1]
            entered.add(key)
            ahead = next((callee for callee in calls[key] if callee not in order), None)
            if ahead is None:
                order[path.pop()] = None
            elif ahead in entered:
                raise InvalidModelError(f"function {ahead[1]} calls itself")
            else:
                path.append(ahead)
    return list(order)


def _callees(function: FunctionProto, functions: Mapping[FunctionKey, FunctionProto]) -> dict[FunctionKey, None]:
    called = (key_of(node) for node in every_node(function))
    return dict.fromkeys(key for key in called if key in functions)


def nodes_with_calls_inlined(body: GraphProto, functions: Mapping[FunctionKey, FunctionProto]) -> int:
    """Returns how many nodes a graph stands for if every call is inlined, calls in functions too."""
    counts: dict[FunctionKey, int] = {}
    for key in callees_first(functions):
        counts[key] = sum(counts.get(key_of(node), 1) for node in every_node(functions[key]))
    return sum(counts.get(key_of(node), 1) for node in every_node(body))
