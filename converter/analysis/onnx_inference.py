# SPDX-License-Identifier: Apache-2.0
"""Runs onnx's inference. Its data propagation makes an entry for each element of a list whose size is known, 350 bytes
apiece: in a graph that has a list of millions, it is done without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import onnx.shape_inference
from onnx import GraphProto

from onnx_convert.model.graphs import subgraphs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import ModelProto, TypeProto

HEAVY: Final = "onnx_convert.heavy"
"""The domain of a view in which lists may be so long: of large inputs, or with large numbers among its constants."""

LONG: Final = 1 << 16  # elements of a list
LARGE: Final = 1 << 18  # elements of a value, or a number, from which on a view is heavy


def infer(serialised: bytes, *, check_type: bool, strict: bool, data_prop: bool) -> GraphProto:
    """Returns the main graph of a serialised view, inferred; raises what is wrong if `strict`."""
    if data_prop and HEAVY.encode() in serialised:
        found = _infer(serialised, check_type=check_type, strict=strict, data_prop=False)
        if found.functions or any(_is_long(kind) for kind in _types(found.graph)):
            return found.graph
    return _infer(serialised, check_type=check_type, strict=strict, data_prop=data_prop).graph


def _infer(serialised: bytes, *, check_type: bool, strict: bool, data_prop: bool) -> ModelProto:
    return onnx.shape_inference.infer_shapes(serialised, check_type=check_type, strict_mode=strict, data_prop=data_prop)


def _types(graph: GraphProto) -> Iterator[TypeProto]:
    for values in (graph.input, graph.value_info, graph.output):
        for value in values:
            yield value.type
    for node in graph.node:
        for _, _, inner in subgraphs(node):
            yield from _types(inner)


def _is_long(kind: TypeProto) -> bool:
    dims = kind.tensor_type.shape.dim
    return len(dims) == 1 and dims[0].dim_value >= LONG
