# SPDX-License-Identifier: Apache-2.0
"""Up to IR version 3 every initializer is an input of the main graph too; from 4 on such an input may be replaced by
whoever runs the model, and so is no constant for a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import GraphProto, helper

if TYPE_CHECKING:
    from onnx_convert.model.patch import GraphPatch


def initializers_to_inputs(patch: GraphPatch) -> None:
    """Adds an input to the main graph for each initializer that will be there and has none."""
    graph = patch.graph
    given = {value.name for value in graph.input}
    for tensor in (*graph.initializer, *patch.constants):
        if tensor.name not in given and tensor.name not in patch.dropped:
            patch.inputs.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))


def initializers_leave_inputs(patch: GraphPatch) -> None:
    """Takes the initializers off the inputs of the main graph."""
    graph = patch.graph
    assert isinstance(graph, GraphProto)
    names = {tensor.name for tensor in graph.initializer} | {sparse.values.name for sparse in graph.sparse_initializer}
    patch.dropped_inputs.update(value.name for value in graph.input if value.name in names)
