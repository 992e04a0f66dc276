# SPDX-License-Identifier: Apache-2.0
"""Where an evaluator contradicts the text of an operator, besides what `conformance.evaluators.FAULTS` lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from onnx import ModelProto, NodeProto

from oracle import REFERENCE, all_nodes

Attributes = dict[str, Any]


def _attributes(node: NodeProto) -> Attributes:
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


# Operator, which nodes of it, and what the reference does with them.
WRONG: list[tuple[str, Callable[[NodeProto, Attributes], bool], str]] = [
    ("QLinearConv", lambda _node, _attributes: True, "it rounds when it has added the zero point, not before"),
    (
        "Resize",
        lambda _, a: a.get("coordinate_transformation_mode") == b"tf_crop_and_resize",
        "it divides by a length that is not whole",
    ),
    (
        "Resize",
        lambda _, a: a.get("coordinate_transformation_mode") == b"pytorch_half_pixel",
        "it does not take the first element where there is to be one",
    ),
    (
        "Attention",
        lambda node, a: len(node.output) > 3 and bool(a.get("softcap")),
        "it gives scores that are capped already where the bare products are asked for",
    ),
    (
        "Attention",
        lambda node, a: bool(a.get("is_causal")) and len(node.input) > 3 and bool(node.input[3]),
        "it makes the triangle as high as the mask, which may have one row for all queries",
    ),
]


def is_wrong(evaluator: str, model: ModelProto) -> bool:
    """Tells whether the reference is known to be wrong about a node of this model."""
    if evaluator != REFERENCE:
        return False
    nodes = [node for node in all_nodes(model) if not node.domain]
    return any(
        node.op_type == operator and when(node, _attributes(node)) for node in nodes for operator, when, _ in WRONG
    )
