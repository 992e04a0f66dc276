# SPDX-License-Identifier: Apache-2.0
"""Promotion: an operator works in a wider dtype where the target lacks one, if the options say so."""

from __future__ import annotations

import pytest
from texts import model, node_named, operators, with_names

import onnx_convert
import onnx_convert.adapters
from onnx_convert import RefusedError


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, "--types cast"), ({"types": "cast"}, ["Cast", "Cast", "Where", "Cast"]), ({"types": "cast-rounding"}, None)],
)
def test_a_dtype_that_the_target_lacks(options: dict, outcome: list[str] | str | None) -> None:
    graph = "(bool[2] c, bfloat16[2] a, bfloat16[2] b) => (bfloat16[2] y) { y = Where (c, a, b) }"
    source = with_names(model(graph, 16), "n")
    if isinstance(outcome, str):
        with pytest.raises(RefusedError) as caught:
            onnx_convert.convert(source, to=15, **options)
        assert outcome in caught.value.refusals[0].remedy
        return
    converted = onnx_convert.convert(source, to=15, **options).model
    assert operators(converted) == (outcome or ["Cast", "Cast", "Where", "Cast"])
    assert node_named(converted, "n").op_type == "Where"
