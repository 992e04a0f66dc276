# SPDX-License-Identifier: Apache-2.0
"""Models that are no rows, for onnx's checker or every evaluator refuses them: what adapters make of them."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from texts import operators

import onnx_convert
from oracle import ir_version_of

REFUSED = [
    (
        "Col2Im onto who knows how many axes", 18, 17, "number of the image's axes",
        "(float[1,4,9] x, int64[N] i, int64[N] b) => (float[] y) { y = Col2Im(x, i, b) }",
    ),
    (
        "Slice with bounds of unknown number", 10, 9, "number of starts",
        "(float[] x, int64[N] s, int64[N] e) => (float[] y) { y = Slice(x, s, e) }",
    ),
    (
        "Concat of nothing", 11, 10, "empty",
        "() => (float[] y) { s = SequenceEmpty() y = ConcatFromSequence<axis=0>(s) }",
    ),
    (
        "what is not in an Optional", 15, 14, "holds nothing",
        "() => (float[] y) { s = Optional<type: type_proto = float[2]>() y = OptionalGetElement(s) }",
    ),
    (
        "a sequence that a branch gives", 11, 10, "leaves its graph",
        ("(float[2] x, bool c) => (float[2] y) <int64 z = {0}> { s = SequenceConstruct(x)"
        " r = If<then_branch = t () => (seq(float[2]) a) { a = SequenceInsert(s, x) },"
        " else_branch = e () => (seq(float[2]) b) { b = SequenceErase(s) }>(c) y = SequenceAt(r, z) }"),
    ),
    (
        "a sequence that a branch reads in its own way", 13, 10, "is read by",
        ("(float[2] x, bool c) => (float[2] y) { s = SequenceConstruct(x)"
        " r = If<then_branch = t () => (seq(float[2]) a) { a = Loop<body = l (int64 i, bool g, seq(float[2]) v)"
        ' => (bool h, seq(float[2]) w) { h = Identity(g) w = SequenceErase(v) }>("", c, s) },'
        " else_branch = e () => (seq(float[2]) b) { b = SequenceErase(s) }>(c) y = ConcatFromSequence<axis=0>(r) }"),
    ),
    (
        "an optional that is given", 16, 15, "takes from opset 16 on",
        "(optional(float[2]) x) => (float[2] y) { t = Identity(x) y = OptionalGetElement(t) }",
    ),
]  # fmt: skip

CONVERTED = [
    (
        "Scan without its first result", 9, 8, ["Unsqueeze", "Scan", "Squeeze"],
        ('(float[3,2] x) => (float[3,2] z) { "", z = Scan<num_scan_inputs=1,'
        " body = b (float[2] u) => (float[2] w, float[2] v) { w = Abs(u) v = Neg(u) }>(x) }"),
    ),
    (
        "SequenceMap whose body states no types", 17, 16,
        ["SequenceConstruct", "SequenceEmpty", "SequenceLength", "Loop", "SequenceAt"],
        ("(float[2] x) => (float[2] y) <int64 z = {0}> { s = SequenceConstruct(x)"
        " t = SequenceMap<body = b (u) => (w) { w = Neg(u) }>(s) y = SequenceAt(t, z) }"),
    ),
]  # fmt: skip


def model(graph: str, opset: int) -> onnx.ModelProto:
    imports = [onnx.helper.make_opsetid("", opset)]
    parsed = onnx.parser.parse_graph(f"g {graph}")
    return onnx.helper.make_model(parsed, opset_imports=imports, ir_version=ir_version_of(opset))


@pytest.mark.parametrize(
    ("source", "target", "because", "graph"), [pytest.param(*case, id=name) for name, *case in REFUSED]
)
def test_refused(source: int, target: int, because: str, graph: str) -> None:
    with pytest.raises(onnx_convert.RefusedError) as refused:
        onnx_convert.convert(model(graph, source), to=target)
    assert any(because in refusal.reason for refusal in refused.value.refusals), refused.value.refusals


@pytest.mark.parametrize(
    ("source", "target", "into", "graph"), [pytest.param(*case, id=name) for name, *case in CONVERTED]
)
def test_converted(source: int, target: int, into: list[str], graph: str) -> None:
    result = onnx_convert.convert(model(graph, source), to=target).model
    assert operators(result) == into


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_a_scan_of_results_whose_rank_is_not_known(axis: int) -> None:
    """Onnxruntime asks for shapes of all results of the body."""
    source = model(
        f"(float[3,2] x, int64[R] s) => (float[] y) {{ y = Scan<num_scan_inputs=1, scan_output_axes=[{axis}],"
        " body = b (float[2] u) => (float[] w) { w = Reshape(u, s) }>(x) }",
        11,
    )
    result = onnx_convert.convert(source, to=8).model
    assert operators(result)[-1] == "Reshape" and operators(result).count("Transpose") == 1


ML = "ai.onnx.ml"
LEAF = (
    'nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], nodes_modes=["LEAF"], nodes_truenodeids=[0],'
    " nodes_falsenodeids=[0], target_treeids=[0], target_nodeids=[0], target_ids=[0], n_targets=1"
)
STATISTICS = "float[3] s, float[3] b, float[3] m, float[3] v"
WHOLE = [
    (
        "integers that become words, by what the output is",
        {ML: 2},
        ["Op", "LabelEncoder"],
        (
            'g (float[2] x) => (string[2] y) { t = com.acme.Op(x) y = ai.onnx.ml.LabelEncoder<classes_strings=["a"],'
            ' default_string="?">(t) }'
        ),
    ),
    (
        "words that become integers, by their default",
        {ML: 2},
        ["Op", "LabelEncoder", "Op"],
        (
            'g (float[2] x) => (float[2] z) { t = com.acme.Op(x) y = ai.onnx.ml.LabelEncoder<classes_strings=["a"],'
            " default_int64=3>(t) z = com.acme.Op(y) }"
        ),
    ),
    (
        "a tensor of one number without axes",
        {ML: 1},
        ["TreeEnsembleRegressor"],
        (
            "g (float[N,2] x) => (float[N,1] y) {"
            " y = ai.onnx.ml.TreeEnsembleRegressor<nodes_values_as_tensor=double {0.5},"
            f" target_weights_as_tensor=double {{1.5}}, {LEAF}>(x) }}"
        ),
    ),
    (
        "a ratio that calls of a function give",
        13,
        ["f"],
        (
            'g (float[2] x) => (float[2] y) { y = com.acme.f<r=0.5>(x) } <domain: "com.acme", opset_import: ["":10]>'
            " f <r> (x) => (y) { y = Dropout<ratio: float = @r>(x) }"
        ),
    ),
    (
        "Clip of who knows what",
        15,
        ["Op", "CastLike", "CastLike", "Clip", "Op"],
        "g (float[2] x) => (float[2] y) { t = com.acme.Op(x) u = Clip<min=0.0>(t) y = com.acme.Op(u) }",
    ),
    (
        "statistics of elements",
        9,
        ["Flatten", "BatchNormalization", *["Reshape"] * 5],
        (
            f"g (float[2,3] x, {STATISTICS}) => (float[2,3] y, float[3] p, float[3] q, float[3] r, float[3] t)"
            " { y, p, q, r, t = BatchNormalization<spatial=0>(x, s, b, m, v) }"
        ),
    ),
]


@pytest.mark.parametrize(("target", "into", "text"), [pytest.param(*case, id=name) for name, *case in WHOLE])
def test_converted_whole(target: int | dict[str, int], into: list[str], text: str) -> None:
    """Models with other domains."""
    opset = {9: 8}.get(target, 10) if isinstance(target, int) else 15
    ml = 3 if "Tree" in text else 1
    header = f'<ir_version: 8, opset_import: ["": {opset}, "{ML}": {ml}, "com.acme": 1]>'
    result = onnx_convert.convert(onnx.parser.parse_model(f"{header} {text}"), to=target).model
    assert operators(result) == into


def test_a_label_encoder_without_keys() -> None:
    text = f'<ir_version: 8, opset_import: ["": 15, "{ML}": 2]> g (string[2] x) => (string[2] y)'
    source = onnx.parser.parse_model(f'{text} {{ y = {ML}.LabelEncoder<values_strings=["a"]>(x) }}')
    with pytest.raises(onnx_convert.RefusedError, match="there are no keys"):
        onnx_convert.convert(source, to={ML: 1})
