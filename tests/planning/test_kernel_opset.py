# SPDX-License-Identifier: Apache-2.0
"""What is converted for a runtime has a kernel for each node there: by another opset, in parts, in a wider dtype; or it
is refused."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto
from texts import model, operators

import onnx_convert
from onnx_convert.report import CODES

IDENTITY = "(float[2] x) => (float[2] y) { z = Identity (x) y = Relu (z) }"
HALF = "(float16[2, 3] x, float16[3] s) => (float16[2, 3] y) { y = LayerNormalization (x, s) }"
NORM = "(float[2, 3] x, float[3] s) => (float[2, 3] y) { y = LayerNormalization (x, s) }"
TRILU = "(float[3, 3] x) => (float[3, 3] y) { y = Trilu (x) }"
SWISH = "(float[2, 3] x) => (float[2, 3] y) { y = Swish (x) }"
SHORT = "(int16[2, 3] x) => (int16[2, 3] y) { y = Relu (x) }"
LSTM = """(float[2, 3, 4] x, float[1, 8, 4] w, float[1, 8, 2] r) => (float[2, 3, 1, 2] y)
    { y = LSTM <hidden_size = 2, layout = 1> (x, w, r) }"""
BRANCH = """(bool c, float[2] x) => (float[2] y) { y = If (c) <
    then_branch = t () => (float[2] p) { p = RandomUniformLike (x) },
    else_branch = e () => (float[2] q) { q = RandomUniformLike (x) }> }"""
NEWEST = onnx.defs.onnx_opset_version()


def needs(opset: int) -> pytest.MarkDecorator:
    return pytest.mark.skipif(opset > NEWEST, reason=f"the installed onnx ends at opset {NEWEST}")


@pytest.mark.parametrize(
    ("graph", "opset", "runtime", "after"),
    [
        (IDENTITY, 19, "onnxruntime@1.15", 18),
        (IDENTITY, 19, "onnxruntime@1.16", 19),
        (IDENTITY, 19, "triton@23.06", 18),
        (IDENTITY, 18, "onnxruntime@1.15", 18),
        pytest.param(BRANCH, 22, "onnxruntime@1.21", 21, marks=needs(22)),
        pytest.param(SWISH, 25, "onnxruntime@1.24", 24, marks=needs(25)),
        (LSTM, 14, "onnxruntime@1.20", 13),
        pytest.param(LSTM, 22, "onnxruntime@1.24", 13, marks=needs(22)),
    ],
)
def test_the_nearest_opset_with_kernels_is_taken(graph: str, opset: int, runtime: str, after: int) -> None:
    report = onnx_convert.plan(model(graph, opset), runtime=runtime)
    assert report.opsets_after == {"ai.onnx": after}
    assert not report.warnings
    assert any("has no kernel" in note and f"opset {after}" in note for note in report.notes) == (after != opset)


def test_the_note_says_why() -> None:
    report = onnx_convert.plan(model(IDENTITY, 20), runtime="onnxruntime@1.15")
    assert report.notes[1] == (
        "onnxruntime 1.15 loads opset 19, but has no kernel for Identity there: opset 18 is the nearest that does"
    )


@pytest.mark.parametrize(
    ("graph", "opset", "runtime", "gone"),
    [
        (HALF, 18, "onnxruntime@1.15", "LayerNormalization"),
        (HALF, 18, "onnxruntime@1.16", "LayerNormalization"),
        (NORM, 17, "tensorrt@8.5", "LayerNormalization"),
        (TRILU, 14, "tensorrt@8.4", "Trilu"),
    ],
)
def test_an_operator_without_a_kernel_is_taken_apart(graph: str, opset: int, runtime: str, gone: str) -> None:
    conversion = onnx_convert.convert(model(graph, opset), runtime=runtime)
    assert conversion.report.opsets_after == {"ai.onnx": opset}
    assert gone not in operators(conversion.model)
    assert not conversion.report.warnings


@pytest.mark.parametrize(
    ("graph", "opset", "runtime"),
    [
        (HALF, 17, "onnxruntime@1.15"),
        (HALF, 18, "onnxruntime@1.17"),
        (NORM, 17, "tensorrt@8.6"),
        (NORM, 17, "openvino@2026.4"),
    ],
)
def test_one_with_a_kernel_stays(graph: str, opset: int, runtime: str) -> None:
    source = model(graph, opset)
    assert onnx_convert.convert(source, runtime=runtime).model.graph.node == source.graph.node


def test_without_a_runtime_nobody_asks() -> None:
    source = model(HALF, 19)
    assert operators(onnx_convert.convert(source, to=18).model) == ["LayerNormalization"]


def test_a_dtype_goes_between_casts() -> None:
    conversion = onnx_convert.convert(model(SHORT, 14), runtime="onnxruntime@1.18", types="cast")
    assert operators(conversion.model) == ["Cast", "Relu", "Cast"]
    assert conversion.report.opsets_after == {"ai.onnx": 14}


def refusal(source: ModelProto, runtime: str, **options: str) -> onnx_convert.report.Refusal:
    """The one refusal of a conversion for a runtime."""
    with pytest.raises(onnx_convert.RefusedError) as caught:
        onnx_convert.convert(source, runtime=runtime, **options)
    (refused,) = caught.value.refusals
    assert refused.code in CODES
    return refused


def test_a_dtype_is_refused_with_its_remedy() -> None:
    source = model(SHORT, 14)
    source.graph.node[0].name = "r"
    refused = refusal(source, "onnxruntime@1.18")
    assert (refused.code, refused.node) == ("no-kernel", "r")
    assert refused.reason == "onnxruntime 1.18 has no kernel for Relu at opset 14 with X of int16"
    assert refused.remedy == "--types cast carries it through int32 (exact)"


def test_an_operator_is_refused_with_its_remedy() -> None:
    graph = "(float[1, 1, 4, 4] x, float[1, 5] r) => (float y) { y = MaxRoiPool <pooled_shape = [1, 1]> (x, r) }"
    refused = refusal(model(graph, 11), "tensorrt@8.2")
    assert refused.code == "no-kernel"
    assert refused.reason == "tensorrt 8.2 has no kernel for MaxRoiPool at opset 11"
    assert refused.remedy == "there is none"  # it is at opset 11 already
    assert refusal(model(graph, 12), "tensorrt@7.0").remedy == "--to 11 writes it without asking for kernels"


def test_operators_of_other_domains_are_warned_of() -> None:
    graph = "(float[2, 2] x) => (float[2, 2] y) { t = com.microsoft.Gate (x) y = com.microsoft.FusedMatMul (t, t) }"
    report = onnx_convert.plan(model(graph, 17, com_microsoft=1), runtime="onnxruntime@1.20")
    assert report.warnings == ["onnxruntime 1.20 has no kernel for com.microsoft.Gate at opset 1 (nodes: 1)"]
