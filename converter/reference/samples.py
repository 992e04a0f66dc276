# SPDX-License-Identifier: Apache-2.0
"""Shows what becomes of a node at a boundary, without a model of the user's: a small one is converted on the spot.

The models come from the tests, where each crossing that an adapter makes has one.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import onnx.helper
import onnx.parser

import onnx_convert.adapters  # noqa: F401  (fills the registry when asked)
from onnx_convert.errors import OnnxConvertError
from onnx_convert.planning.pipeline import planned
from onnx_convert.storage.source import open_source
from onnx_convert.target.request import requested

if TYPE_CHECKING:
    from onnx_convert.report import Example


def sample(operator: str, boundary: int, direction: str) -> Example | None:
    """Returns one rewrite of an operator of ai.onnx at a boundary, up or down; None if there is none to show."""
    crossing = f"{operator}@{boundary} {direction}"
    found = _samples().get(crossing)
    return drawn_from(crossing, *found) if found is not None else None


def drawn_from(crossing: str, source: int, target: int, graph: str) -> Example | None:
    """Returns the rewrite that takes a crossing, `Softmax@13 down`, in a graph in ONNX's text form that is moved from
    one opset to another."""
    operator, _, rest = crossing.partition("@")
    boundary, _, direction = rest.partition(" ")
    opset = onnx.helper.make_opsetid("", source)
    proto = onnx.helper.make_model(
        onnx.parser.parse_graph(f"g {graph}"),
        opset_imports=[opset],
        ir_version=max(onnx.helper.find_min_ir_version_for([opset]), 4),
    )
    try:
        with open_source(proto, None) as model:
            _, report = planned(model, requested(target, examples=True))
    except OnnxConvertError:  # with another onnx than that of the samples
        return None
    for example in report.examples or ():
        steps = example.steps
        if steps and (steps[0].operator, steps[0].boundary, steps[0].direction) == (operator, int(boundary), direction):
            return example
    return None


@lru_cache(maxsize=1)
def _samples() -> dict[str, tuple[int, int, str]]:
    text = (resources.files("onnx_convert.reference") / "samples.json").read_text(encoding="utf-8")
    return {crossing: (source, target, graph) for crossing, (source, target, graph) in json.loads(text).items()}
