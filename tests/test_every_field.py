# SPDX-License-Identifier: Apache-2.0
"""Every field of every message of ONNX survives a conversion where it is not touched, at every level where it may
stand, whatever it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from filled import every_field, fields_of, fill
from made_up import OWN, own
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from texts import model, opset_imports

import onnx_convert
from onnx_convert.model.graphs import own_of
from onnx_convert.storage import skeleton

TEXT = """(float[2,3,4] x, bool c, seq(float[N]) s, optional(float[2]) o) => (float[2,3,4] y, float[2,3,4] z)
<float w = {1.5}, int64[2] q = {1, 2}> {
    a = Softmax<axis=1>(x)
    b = Relu(a)
    y = If(c) <then_branch = t () => (float[2,3,4] i) <float inner = {1}> { i = Add(b, inner) },
               else_branch = e () => (float[2,3,4] j) { k = Softmax<axis=1>(b) j = Neg(k) }>
    u, v = com.acme.All <i = 1, f = 2.5, s = "text", ints = [1, 2], floats = [0.5], strings = ["a", "b"]> (b, s, o)
    z = f.F<alpha=2.0>(b)
}"""
FUNCTION = (
    '<domain: "f", opset_import: ["" : {0}, "f": 1]> F <alpha> (p) => (r) {{ m = Softmax<axis=1>(p) r = Neg(m) }}'
)


def whole(opset: int, *, touched: bool) -> ModelProto:
    """Returns a model that has every field that means something. Without `touched` no node needs a rewrite."""
    text, function = (
        (TEXT, FUNCTION) if touched else (part.replace("Softmax<axis=1>", "Tanh") for part in (TEXT, FUNCTION))
    )
    made = model(text, opset, function.format(opset), ir=onnx.IR_VERSION, com_acme=1, f=1)
    graph = made.graph
    for index, node in enumerate(nodes_of(made)):
        node.name = f"node{index}"
    everything = next(node for node in graph.node if node.op_type == "All")
    everything.attribute.extend(
        [
            helper.make_attribute("t", dense("t")),
            helper.make_attribute("tensors", [dense("t1"), dense("t2")]),
            helper.make_attribute("g", body("g")),
            helper.make_attribute("graphs", [body("g1"), body("g2")]),
            helper.make_attribute("sparse", sparse("p")),
            helper.make_attribute("sparses", [sparse("p1"), sparse("p2")]),
            helper.make_attribute("tp", kind()),
            helper.make_attribute("tps", [kind(), graph.input[2].type]),
        ]
    )
    graph.initializer.extend(payloads())
    graph.sparse_initializer.append(sparse("sparse"))
    graph.value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 3, 4]))
    value = graph.input.add(name="odd")
    value.type.map_type.key_type = TensorProto.INT64
    value.type.map_type.value_type.sparse_tensor_type.elem_type = TensorProto.FLOAT
    value.type.map_type.value_type.sparse_tensor_type.shape.dim.add(dim_param="K")
    graph.input.add(name="opaque").type.opaque_type.name = "own"
    graph.input[-1].type.opaque_type.domain = "com.acme"
    noted = graph.quantization_annotation.add(tensor_name="b")
    noted.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    training = made.training_info.add(initialization=body("i"), algorithm=body("a"))
    training.initialization_binding.add(key="w", value="i")
    training.update_binding.add(key="w", value="a")
    function = made.functions[0]
    function.overload = "first"
    graph.node[-1].overload = "first"
    function.attribute_proto.append(helper.make_attribute("beta", 1.5))
    function.value_info.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [2, 3, 4]))
    function.node[1].attribute.add(name="kept", type=AttributeProto.FLOAT, ref_attr_name="alpha")
    function.node[1].domain, function.node[1].op_type = "com.acme", "Mine"
    function.opset_import.add(domain="com.acme", version=1)
    return made


def kind() -> onnx.TypeProto:
    return helper.make_tensor_type_proto(TensorProto.FLOAT, [2, "N"])


def dense(name: str) -> TensorProto:
    return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2], float_data=[1.5, float("nan")])


def sparse(name: str) -> onnx.SparseTensorProto:
    indices = numpy_helper.from_array(onnx.numpy_helper.to_array(helper.make_tensor("", 7, [2], [1, 3])), "")
    return helper.make_sparse_tensor(dense(name), indices, [5])


def body(name: str) -> GraphProto:
    """Returns a graph without inputs that makes one value, of that name."""
    node = helper.make_node("Constant", [], [name], value=dense(""), name=f"make {name}")
    return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])])


def payloads() -> list[TensorProto]:
    """Returns a tensor of every dtype, below and above the size from which on elements stay in the file, as raw data
    and as entries of the field that the dtype has."""
    found = []
    for name, dtype in TensorProto.DataType.items():
        if not dtype:
            continue
        bits = {"4": 4, "2": 2, "6": 6}.get(name[-1] if name.startswith(("INT", "UINT")) else "", 0)
        bits = bits if name in ("INT4", "UINT4", "INT2", "UINT2") else WIDTHS.get(name, 8)
        for size in (8, 16_384):
            if name == "STRING":
                found.append(
                    TensorProto(name=f"STRING {size}", data_type=dtype, dims=[size], string_data=[b"\xff!"] * size)
                )
                continue
            raw = bytes(index * 37 % 251 for index in range(size * bits // 8))
            found.append(TensorProto(name=f"{name} {size}", data_type=dtype, dims=[size], raw_data=raw))
        field = helper.tensor_dtype_to_field(dtype) if name != "STRING" else ""
        if field and name not in ("COMPLEX64", "COMPLEX128"):
            entries = 8 * bits // 8 if bits < 8 and bits != 6 else 8
            made = TensorProto(name=f"{name} field", data_type=dtype, dims=[8])
            getattr(made, field).extend([1] * entries)
            found.append(made)
    found.append(TensorProto(name="COMPLEX64 field", data_type=14, dims=[1], float_data=[1.0, 2.0]))
    return found


WIDTHS = {
    "FLOAT": 32, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64, "FLOAT16": 16, "DOUBLE": 64, "UINT32": 32,
    "UINT64": 64, "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT4E2M1": 4, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6,
}  # fmt: skip
"""Bits of an element where they are not eight; those of integers narrower than that are in their names."""


def nodes_of(made: ModelProto) -> list[NodeProto]:
    found: list[NodeProto] = []

    def walk(holder: Any) -> None:
        for node in holder.node:
            found.append(node)
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    walk(graph)

    for holder in (made.graph, *made.functions):
        walk(holder)
    return found


def test_the_model_has_every_field() -> None:
    """What a newer release of onnx brings is either filled by itself, or asks here for a place."""
    made = fields_of(fill(whole(13, touched=True)))
    made["TensorProto", "segment"] = made["Segment", "begin"] = made["Segment", "end"] = 1  # the checker forbids them
    made["TensorProto", "external_data"] = made["TensorProto", "data_location"] = 1  # see tests/storage
    assert every_field() - made.keys() == set()


STAYING = {"Relu", "If", "All", "F", "Add", "Neg", "Mine", "Constant", "Tanh"}


def bare(made: ModelProto) -> ModelProto:
    """Returns a model without what a conversion has to change: its stamps, Softmax and what stands for it, constants
    without a doc string, which are new."""
    left = ModelProto()
    left.CopyFrom(made)
    left.ClearField("ir_version")
    for entry in (*left.opset_import, *(entry for function in left.functions for entry in function.opset_import)):
        entry.ClearField("version")
    _drop(left.graph)
    for function in left.functions:
        _drop(function)
    return left


def _drop(holder: Any) -> None:
    for index in reversed(range(len(holder.node))):
        if holder.node[index].op_type not in STAYING or not holder.node[index].HasField("doc_string"):
            del holder.node[index]
    for tensors in [holder.initializer] if isinstance(holder, GraphProto) else []:
        for index in reversed(range(len(tensors))):
            if not tensors[index].HasField("doc_string"):
                del tensors[index]
    for node in holder.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _drop(attribute.g)
            for graph in attribute.graphs:
                _drop(graph)


@pytest.mark.parametrize("touched", [True, False], ids=["touched", "untouched"])
@pytest.mark.parametrize(("source", "target"), [(12, 13), (13, 12), (24, 25), (25, 24)])
@pytest.mark.parametrize("through", ["file", "memory", "message"])
def test_every_field_survives(tmp_path: Path, through: str, source: int, target: int, *, touched: bool) -> None:
    made = fill(whole(source, touched=touched))
    result = converted(made, target, through, tmp_path)
    assert opset_imports(result)[""] == target
    assert bare(result) == bare(made)
    for node in nodes_of(made):
        others = [other for other in nodes_of(result) if other.name == node.name]
        assert any(own_of(other) == own_of(node) for other in others), node.name


def converted(made: ModelProto, target: int, through: str, folder: Path) -> ModelProto:
    """Returns the model at another opset; its bytes go through a file, or its message through the API."""
    if through == "message":
        return onnx_convert.convert(made, to=target, ir_version=made.ir_version).model
    data = made.SerializeToString()
    (folder / "a.onnx").write_bytes(data)
    source: Any = data if through == "memory" else folder / "a.onnx"
    with onnx_convert.convert(source, to=target, ir_version=made.ir_version) as conversion:
        conversion.save(folder / "b.onnx")
        assert conversion.model == ModelProto.FromString((folder / "b.onnx").read_bytes())
    return ModelProto.FromString((folder / "b.onnx").read_bytes())


@pytest.mark.parametrize("external", ["keep", "save", "embed"])
def test_texts_of_any_size_stay_in_the_file(external: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a threshold of nothing every text and unknown field is left behind, and comes back."""
    monkeypatch.setattr(skeleton, "TEXT_MINIMUM", 1)
    monkeypatch.setattr(skeleton, "PAYLOAD_MINIMUM", 1)
    made = fill(whole(13, touched=True), b"kept \xff in the file")
    if external != "keep":
        del made.graph.initializer[:]  # moved and embedded ones are other messages
    (tmp_path / "a.onnx").write_bytes(made.SerializeToString())
    with onnx_convert.convert(tmp_path / "a.onnx", to=12, ir_version=made.ir_version) as conversion:
        conversion.save(tmp_path / "b.onnx", external=external)
    result = ModelProto.FromString((tmp_path / "b.onnx").read_bytes())
    assert bare(result) == bare(made)


def test_an_adapter_reads_a_long_text() -> None:
    source = own("Counted")
    source.graph.node[0].attribute.append(helper.make_attribute("text", "long " * 20_000))
    source.graph.node[0].attribute.append(helper.make_attribute("texts", ["short", "long " * 20_000 + "end"]))
    with onnx_convert.convert(source.SerializeToString(), to={OWN: 2}) as conversion:
        given = {
            attribute.name: helper.get_attribute_value(attribute)
            for attribute in conversion.model.graph.node[0].attribute
        }
    assert (given["size"], given["last"], len(given["text"])) == (100_000, b"end", 100_000)
