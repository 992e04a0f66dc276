# SPDX-License-Identifier: Apache-2.0
"""Replay: a node like one that was rewritten before costs no adapter, and keeps what is its own."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from texts import assert_same_numbers, function, model, with_names

import onnx_convert
import onnx_convert.adapters
from onnx_convert.rewrite.legalizer import Legalizer
from onnx_convert.rewrite.written import WrittenNodes
from oracle import run


@pytest.mark.parametrize(("start", "stop"), [(13, 12), (12, 13)])
@pytest.mark.parametrize("named", [True, False])
def test_nodes_that_look_alike_are_each_rewritten_for_what_they_are(start: int, stop: int, named: bool) -> None:
    """The same Softmax on values of several ranks, named and not, in the graph, in a Scan and in functions."""
    again = " ".join(f"{out} = Softmax <axis = 1> ({of})" for out, of in (("s{0}", "{1}"), ("u{0}", "s{0}")))
    source = model(
        f"""(float[3,4] x, float[3,4,2] y, float[3,4,2,2] z)
            => (float[3,4] u0, float[3,4,2] u1, float[3,4,2,2] u2,
                float[3,4,2] v, float[3,4,2,2] w, float[3,4] f, float[3,4,2] g) {{
            {again.format(0, "x")} {again.format(1, "y")} {again.format(2, "z")}
            v = Scan <num_scan_inputs = 1, body = p (float[4,2] q) => (float[4,2] u3) {{ {again.format(3, "q")} }}> (y)
            w = Scan <num_scan_inputs = 1, body = r (float[4,2,2] o) => (float[4,2,2] u4) {{
                {again.format(4, "o")} }}> (z)
            f = f.F (x) g = f.G (y) }}""",
        start,
        function(again.format(0, "x").replace("u0", "y"), start),
        function(again.format(0, "x").replace("u0", "y"), start, "G"),
        ir=8,
        f=1,
    )
    if named:
        with_names(source)
    converted = onnx_convert.convert(source, to=stop, keep_functions=True).model
    assert_same_numbers(source, converted)


def test_nodes_alike_cost_one_visit_to_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are called, whatever is noted on them; and each keeps what is its own, fields of the future too."""
    source = model(
        "(float[2,3,4] v0) => (float[2,3,4] v40) {"
        + "".join(f"v{number + 1} = Softmax <axis = 1> (v{number}) " for number in range(40))
        + "}",
        12,
    )
    future = b"\xfa\x3f\x01?"  # field 1023
    for number, node in enumerate(source.graph.node):
        node.name = f"ünïcode {number}" if number % 2 else "x" * 200 + str(number)
        if number % 3:
            node.doc_string = f"line {number}"
            node.metadata_props.add(key="stack", value=str(number)).MergeFromString(future)
        node.MergeFromString(future)
    crossed = []
    cross = Legalizer._cross
    monkeypatch.setattr(Legalizer, "_cross", lambda *given: crossed.append(given) or cross(*given))
    converted = onnx_convert.convert(source, to=13).model
    assert len(crossed) == 1
    bearers = [node for node in converted.graph.node if node.op_type == "Softmax"]
    assert len(bearers) == 40 and len(converted.graph.node) == 120
    for before, after in zip(source.graph.node, bearers, strict=True):
        assert (after.name, after.doc_string, after.metadata_props) == (
            before.name,
            before.doc_string,
            before.metadata_props,
        )
        assert after.SerializeToString().endswith(future)
    assert_same_numbers(source, converted)


def test_nodes_alike_forget_alike() -> None:
    """What nobody makes any more has no type either, whether an adapter was asked or not."""
    names = [f"{letter}{number}" for number in range(3) for letter in "ym"]
    nodes = " ".join(f"y{n}, m{n} = LayerNormalization <axis = -1> (x, s)" for n in range(3))
    outputs = ", ".join(f"float[2,3] {name}" for name in names[::2])
    stated = ", ".join(f"float[2,1] {name}" for name in names[1::2])
    source = model(f"(float[2,3] x, float[3] s) => ({outputs}) <{stated}> {{ {nodes} }}", 17)
    converted = onnx_convert.convert(source, to=16).model
    assert not {value.name for value in converted.graph.value_info} & set(names)
    assert_same_numbers(source, converted)


def test_questions_about_values_of_its_own_making_keep_nobody_from_following(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Reshape asks who made its shape. Nor is what followed parsed because the next one is asked about."""
    crossed, parsed = [], []
    cross, parse = Legalizer._cross, WrittenNodes._open
    monkeypatch.setattr(Legalizer, "_cross", lambda *given: crossed.append(given) or cross(*given))
    monkeypatch.setattr(WrittenNodes, "_open", lambda *given: parsed.append(given) or parse(*given))
    visits = []
    for count in (1, 20):
        nodes = "".join(f"v{number + 1} = Softmax <axis = 1> (v{number}) " for number in range(count))
        source = model(f"(float x) => (float y) {{ v0 = Relu (x) {nodes} y = Relu (v{count}) }}", 13)
        for value in (source.graph.input[0], source.graph.output[0]):
            value.type.tensor_type.ClearField("shape")
        crossed.clear()
        converted = onnx_convert.convert(source, to=12).model
        visits.append(len(crossed))
    assert visits[0] == visits[1] > 1
    assert not parsed
    x = np.random.default_rng(0).standard_normal((2, 3, 0, 4)).astype(np.float32)
    for feed in (x, np.ones((2, 3, 4), np.float32) * np.arange(3, dtype=np.float32)[:, None]):
        for before, after in zip(run(source, {"x": feed}), run(converted, {"x": feed}), strict=True):
            np.testing.assert_allclose(before, after, rtol=1e-5)


def test_rare_kinds_do_not_drive_out_the_common_one(monkeypatch: pytest.MonkeyPatch) -> None:
    crossed = []
    cross = Legalizer._cross
    monkeypatch.setattr(Legalizer, "_cross", lambda *given: crossed.append(given) or cross(*given))
    inputs = ", ".join(f"float[2,3,{number + 1}] x{number}" for number in range(40))
    outputs = ", ".join(f"float[2,3,{number + 1}] y{number}" for number in range(40))
    nodes = " ".join(f"y{number} = Softmax <axis = 1> (x{number})" for number in range(40))
    again = " ".join(f"z{number} = Softmax <axis = 1> (x0)" for number in range(40))
    onnx_convert.convert(model(f"({inputs}) => ({outputs}) {{ {nodes} {again} }}", 12), to=13)
    assert len(crossed) == 41


def test_doc_strings_may_be_any_bytes() -> None:
    text = "(float[2,3,4] x) => (float[2,3,4] z) { y = Softmax <axis = 1> (x) z = Softmax <axis = 1> (y) }"
    for start, stop in ((12, 13), (13, 12)):
        source = model(text, start)
        for node in source.graph.node:
            node.doc_string = "Straesse"
        source = ModelProto.FromString(source.SerializeToString().replace(b"ae", b"\xe4\xe4"))
        converted = onnx_convert.convert(source, to=stop).model
        assert converted.SerializeToString().count(b"Str\xe4\xe4sse") == 2
