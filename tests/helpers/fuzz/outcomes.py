# SPDX-License-Identifier: Apache-2.0
"""What comes of a trial, as something to compare; and its model several times over."""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto, ModelProto, NodeProto, ValueInfoProto

import onnx_convert
from fuzz.trials import Trial

COPIES = 4


def outcome(model: ModelProto, trial: Trial) -> Any:
    """The converted model and how often which step was gone; the refusals where it cannot be converted; what onnx finds
    wrong with it, now that less is known of its inputs."""
    try:
        conversion = onnx_convert.convert(model, to=trial.target, **trial.options)
    except onnx_convert.RefusedError as error:
        return error.refusals
    except onnx_convert.InvalidModelError as error:
        return str(error)
    return conversion.model, conversion.report.steps


def several(trial: Trial) -> ModelProto | None:
    """Returns the model several times over in one graph: as it is; with notes on its nodes; on inputs of which only the
    rank is known; on inputs of which not even that is. None where the nodes have subgraphs, in which each name would
    have to be another."""
    source = trial.disguised().model
    graph = source.graph
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for node in graph.node for a in node.attribute):
        return None
    constants = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    model = ModelProto()
    model.CopyFrom(source)
    for field in ("node", "output", "value_info"):
        model.graph.ClearField(field)
    for number in range(COPIES):
        shared = {"", *constants, *([] if number > 1 else (value.name for value in graph.input))}

        def renamed(name: str, shared: set[str] = shared, ending: str = f"_{number}") -> str:
            return name if name in shared else name + ending

        for node in graph.node:
            new: NodeProto = model.graph.node.add()
            new.CopyFrom(node)
            new.input[:] = map(renamed, node.input)
            new.output[:] = map(renamed, node.output)
            new.name = renamed(node.name)
            if number % 2:
                new.doc_string = f"copy {number} of {node.name}"
                new.metadata_props.add(key="copy", value=str(number))
        stated = [(graph.output, model.graph.output)]
        stated += [(graph.value_info, model.graph.value_info)] if number < 2 else [(graph.input, model.graph.input)]
        for values, copies in stated:
            for value in values:
                if value.name not in shared:
                    copy: ValueInfoProto = copies.add()
                    copy.CopyFrom(value)
                    copy.name = renamed(value.name)
                    if number == 2:
                        for dim in copy.type.tensor_type.shape.dim:
                            dim.Clear()
                    if number == 3:
                        copy.type.tensor_type.ClearField("shape")
    return model if model.graph.output else None
