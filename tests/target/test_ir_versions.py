# SPDX-License-Identifier: Apache-2.0
"""The IR version of a result: it follows the opset, as far as the content allows, or what was asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from texts import assert_same_numbers, model, operators

import onnx_convert
from onnx_convert import UsageError
from onnx_convert.spec import opsets
from oracle import compare, feeds_for, opset_of, run

NEWEST_OPSET, NEWEST_IR = opsets.latest(), opsets.newest_ir_version()
RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"


@pytest.mark.parametrize(
    ("opset", "ir", "to", "expected"),
    [
        # up: it rises to that of the release which brought the opset
        (7, 3, 8, 3),
        (8, 3, 9, 4),
        (8, 3, 10, 5),
        (8, 3, 11, 6),
        (8, 3, 13, 7),
        (8, 3, 21, 10),
        (13, 7, 17, 8),
        (17, 8, 19, 9),
        (17, 8, 22, 10),
        (8, 3, NEWEST_OPSET, NEWEST_IR),
        # ... and never sinks
        (13, 8, 14, 8),
        (17, 10, 18, 10),
        # down: it sinks to that of the release
        (21, 10, 19, 9),
        (21, 10, 17, 8),
        (17, 8, 14, 7),
        (13, 7, 11, 6),
        (13, 7, 9, 4),
        # ... and never rises
        (17, 7, 15, 7),
        (13, 4, 12, 4),
        # where nothing moves it stays, whatever it is
        (13, 3, 13, 3),
        (13, 10, 13, 10),
        # what is older than 3 becomes 3
        (7, 1, 8, 3),
        (8, 2, 7, 3),
    ],
)
def test_it_follows_the_opset(opset: int, ir: int, to: int, expected: int) -> None:
    source = model(RELU, opset, ir=ir)
    converted = onnx_convert.convert(source, to=to)
    assert (opset_of(converted.model), converted.model.ir_version) == (to, expected)
    report = converted.report
    assert (report.ir_version_before, report.ir_version_after) == (ir, expected)
    onnx.checker.check_model(converted.model, full_check=True)


def holding(opset: int, ir: int, dtype: int | None = None, *, sparse: bool = False) -> ModelProto:
    """Returns a model that holds something which older formats do not know."""
    source = model(RELU, opset, ir=ir)
    if dtype is not None:
        source.graph.initializer.add(
            name="w",
            data_type=dtype,
            dims=[2],
            raw_data=bytes({TensorProto.BFLOAT16: 4, TensorProto.UINT4: 1}.get(dtype, 2)),
        )
    if sparse:
        values = numpy_helper.from_array(np.array([1.0], np.float32), "s")
        indices = numpy_helper.from_array(np.array([0]), "i")
        source.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    return source


@pytest.mark.parametrize(
    ("source", "to", "expected"),
    [
        (holding(21, 10, TensorProto.UINT4), 17, 10),
        (holding(21, 10, TensorProto.FLOAT8E4M3FN), 17, 9),
        (holding(13, 7, TensorProto.BFLOAT16), 7, 4),
        (holding(13, 7, TensorProto.UINT8), 9, 4),
        (holding(13, 7, sparse=True), 9, 6),
    ],
    ids=["uint4", "float8", "bfloat16", "uint8", "sparse"],
)
def test_content_holds_it_up(source: ModelProto, to: int, expected: int) -> None:
    if TensorProto.UINT4 in {tensor.data_type for tensor in source.graph.initializer}:
        source.graph.initializer[0].dims[0] = 1  # packed by twos; one is enough
    assert onnx_convert.convert(source, to=to).model.ir_version == expected


@pytest.mark.parametrize("to", [17, 14, 9])
def test_metadata_does_not_hold_it_up(to: int) -> None:
    source = model(RELU, 21, ir=10)
    source.metadata_props.add(key="k", value="v")
    source.graph.node[0].metadata_props.add(key="k", value="v")
    source.graph.metadata_props.add(key="k", value="v")
    converted = onnx_convert.convert(source, to=to).model
    assert converted.ir_version == opsets.ir_version_of(to)
    assert converted.graph.node[0] == source.graph.node[0]
    assert list(converted.graph.metadata_props) == list(source.graph.metadata_props)


# ---- IR version 3: every initializer is an input, and only the main graph has any


def initializers_and_inputs(model: ModelProto) -> tuple[list[str], list[str]]:
    return [t.name for t in model.graph.initializer], [v.name for v in model.graph.input]


@pytest.mark.parametrize("size", [2, 5000])
def test_initializers_become_inputs(size: int) -> None:
    source = model(f"(float[{size}] x) => (float[{size}] y) {{ y = Add (x, w) }}", 10)
    source.graph.initializer.append(numpy_helper.from_array(np.arange(size, dtype=np.float32), "w"))
    converted = onnx_convert.convert(source, to=8).model
    assert converted.ir_version == 3
    assert initializers_and_inputs(converted) == (["w"], ["x", "w"])
    assert_same_numbers(source, converted)


def test_initializers_that_are_inputs_stay_the_only_ones() -> None:
    source = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }", 10)
    converted = onnx_convert.convert(source, to=8).model
    assert initializers_and_inputs(converted) == (["w"], ["x", "w"])


def test_inputs_stay_inputs_on_the_way_up_where_that_is_asked() -> None:
    source = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }", 8)
    converted = onnx_convert.convert(source, to=13, keep_initializer_inputs=True).model
    assert converted.ir_version == 7
    assert initializers_and_inputs(converted) == (["w"], ["x", "w"])


@pytest.mark.parametrize("size", [2, 5000])
def test_initializers_of_subgraphs_move_to_the_main_graph(size: int, tmp_path: Path) -> None:
    source = model(
        f"""(bool c, float[{size}] x) => (float[{size}] y) {{
            y = If (c) <then_branch = t () => (float[{size}] a) {{ a = Add (x, p) }},
                        else_branch = e () => (float[{size}] b) {{ b = Mul (x, q) }}> }}""",
        9,
    )
    for name, attribute in zip("pq", source.graph.node[0].attribute, strict=True):
        attribute.g.initializer.append(numpy_helper.from_array(np.arange(size, dtype=np.float32), name))
    onnx.save(source, tmp_path / "model.onnx")
    with onnx_convert.convert(tmp_path / "model.onnx", to=8) as conversion:
        conversion.save(tmp_path / "out.onnx")
    for converted in (onnx.load(tmp_path / "out.onnx"), onnx_convert.convert(source, to=8).model):
        assert converted.ir_version == 3
        names, inputs = initializers_and_inputs(converted)
        assert (len(names), inputs[:2], sorted(inputs[2:])) == (2, ["c", "x"], sorted(names))
        assert not any(attribute.g.initializer for attribute in converted.graph.node[0].attribute)
        assert_same_numbers(source, converted)


@pytest.mark.parametrize(
    "graph",
    [
        "(float[2] x) => (float[1,2] y) { y = Unsqueeze <axes = [0]> (x) }",
        """(bool c, float[2] x) => (float[1,2] y) {
            y = If (c) <then_branch = t () => (float[1,2] a) { a = Unsqueeze <axes = [0]> (x) },
                        else_branch = e () => (float[1,2] b) { z = Neg (x) b = Unsqueeze <axes = [0]> (z) }> }""",
    ],
    ids=["main graph", "branches"],
)
def test_new_constants_are_inputs_of_the_main_graph(graph: str) -> None:
    source = model(graph, 12, ir=3)
    converted = onnx_convert.convert(source, to=13, ir_version=3).model
    names, inputs = initializers_and_inputs(converted)
    assert len(names) == 1
    assert inputs == [value.name for value in source.graph.input] + names
    feeds = feeds_for(source)
    assert not compare(run(source, feeds), run(converted, feeds))


# ---- an IR version that is asked for


@pytest.mark.parametrize(
    ("opset", "ir", "to", "wanted"),
    [(17, 8, None, 4), (17, 8, None, 10), (17, 8, 13, 8), (13, 7, 17, 7), (13, 7, None, 3), (13, 7, 13, 7)],
)
def test_asked_for(opset: int, ir: int, to: int | None, wanted: int) -> None:
    source = model(RELU, opset, ir=ir)
    converted = onnx_convert.convert(source, to=to, ir_version=wanted)
    assert (opset_of(converted.model), converted.model.ir_version) == (to or opset, wanted)
    assert list(converted.model.graph.node) == list(source.graph.node)
    assert converted.report.changed == ((to or opset, wanted) != (opset, ir))


@pytest.mark.parametrize(
    ("source", "wanted", "says"),
    [
        (model(RELU, 17), 2, f"not one of 3 to {NEWEST_IR}"),
        (model(RELU, 17), NEWEST_IR + 1, f"not one of 3 to {NEWEST_IR}"),
        (holding(21, 10, TensorProto.FLOAT8E4M3FN), 8, "initializer 'w' needs 9"),
        (holding(13, 7, sparse=True), 5, "a sparse initializer needs 6"),
    ],
)
def test_asked_for_in_vain(source: ModelProto, wanted: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        onnx_convert.convert(source, ir_version=wanted)


def test_functions_are_kept_or_the_ir_version_is_refused() -> None:
    function = '<domain: "f", opset_import: ["" : 13]> F (x) => (y) { y = Neg (x) }'
    source = model("(float[2] x) => (float[2] y) { y = f.F (x) }", 13, function, ir=8, f=1)
    inlined = onnx_convert.convert(source, ir_version=7)
    assert (inlined.model.ir_version, operators(inlined.model)) == (7, ["Neg"])
    with pytest.raises(UsageError, match="function 'F' needs 8"):
        onnx_convert.convert(source, ir_version=7, keep_functions=True)
