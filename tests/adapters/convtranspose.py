# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose: where the padding of SAME goes, and that output_shape has no batch and no channels (11)."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_convert
from boundaries import Row, each_of, keeps, rewrites
from oracle import run

# ---- ConvTranspose


def transposed(attributes: str, y: str, x: str = "1,2,4,5", w: str = "2,1,4,3") -> str:
    """Returns a graph with one ConvTranspose of two axes."""
    return f"(float[{x}] x, float[{w}] w) => (float[{y}] y) {{ y = ConvTranspose<{attributes}>(x, w) }}"


STATED, FOUND = "pads=[0,1,1,0],strides=[2,1]", 'auto_pad="SAME_{}",strides=[2,2]'
CONV: list[Row] = [
    row
    for source, target in ((9, 11), (11, 9), (22, 7))
    for row in (
        keeps("ConvTranspose", source, target, transposed(STATED, "1,1,9,6")),
        *(
            rewrites(
                f"ConvTranspose {side}",
                source,
                target,
                transposed(FOUND.format(side), "1,1,8,10"),
                into=["ConvTranspose"],
            )
            for side in ("UPPER", "LOWER")
        ),
        keeps("ConvTranspose evenly", source, target, transposed('auto_pad="SAME_UPPER",strides=[2,1]', "1,1,8,5")),
    )
]


ROWS = CONV

test_rows = each_of(ROWS)


@pytest.mark.parametrize("size", ["10,8", "9,7"])  # of which the pads on both sides are equal, and are not
@pytest.mark.parametrize("target", [7, 9, 11, 22])
def test_a_shape_of_batch_and_channels_too(size: str, target: int) -> None:
    """As onnx's own models had it once. No evaluator of today takes it: it computes what its last two sizes do."""

    def source(shape: str) -> onnx.ModelProto:
        graph = transposed(f"output_shape=[{shape}],strides=[3,2]", f"1,2,{size}", "1,1,3,3", "1,2,3,3")
        return onnx.parser.parse_model(f'<ir_version: 4, opset_import: ["": 8]> g {graph}')

    conversion = onnx_convert.convert(source(f"1,2,{size}"), to=target)
    if target < 11:
        assert conversion.model.graph.node == source(f"1,2,{size}").graph.node
        return
    assert not conversion.report.warnings
    x, w = (np.arange(n, dtype=np.float32).reshape(shape) for n, shape in ((9, (1, 1, 3, 3)), (18, (1, 2, 3, 3))))
    spatial, result = (run(model, {"x": x, "w": w})[0] for model in (source(size), conversion.model))
    assert result.shape == spatial.shape == (1, 2, *map(int, size.split(",")))
    assert (result == spatial).all()
