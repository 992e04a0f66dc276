# SPDX-License-Identifier: Apache-2.0
"""Models with payloads in every place and form that the format has, and what tests ask of them."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnx_convert.model import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 1500  # elements: a payload, whatever the type
RNG = np.random.default_rng(7)
FLOATS = RNG.standard_normal(SIZE).astype(np.float32)
BITS = RNG.integers(0, 256, SIZE)


def model_of(*initializers: TensorProto, nodes: Any = (), **fields: Any) -> ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"]), *nodes],
        "g",
        [value],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        initializer=initializers,
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)], **fields)


def tensor(field: str, data_type: int, values: Any, name: str = "w", **more: Any) -> TensorProto:
    count = len(values) if field != "raw_data" else SIZE
    made = TensorProto(name=name, data_type=data_type, dims=[count], **more)
    if field == "raw_data":
        made.raw_data = values
    else:
        getattr(made, field).extend(values)
    return made


def weight(name: str = "w", seed: int = 0) -> TensorProto:
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32), name)


def constant(made: TensorProto) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [f"{made.name}_out"], value=made)


def graph_with(made: TensorProto, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    out = helper.make_tensor_value_info(made.name, TensorProto.FLOAT, None)
    return helper.make_graph(nodes, "sub", [], [out], initializer=[made])


def record(number: int, payload: bytes) -> bytes:
    return wire.varint(number << 3 | wire.BYTES) + wire.varint(len(payload)) + payload


def with_initializer(fields: bytes) -> bytes:
    """Returns a model whose first initializer consists of these very bytes."""
    model = model_of()
    graph = record(5, fields) + model.graph.SerializeToString()
    model.ClearField("graph")
    return model.SerializeToString() + record(7, graph)


def sparse() -> ModelProto:
    indices = numpy_helper.from_array(np.arange(SIZE, dtype=np.int64), "i")
    model = model_of()
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(weight(), indices, [SIZE * 2]))
    return model


def in_if() -> ModelProto:
    inner = helper.make_node(
        "If", ["c"], ["i"], then_branch=graph_with(weight("d")), else_branch=graph_with(weight("e"))
    )
    then = graph_with(weight("a"), constant(weight("b")), inner)
    return model_of(nodes=[helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=graph_with(weight("f")))])


def in_function() -> ModelProto:
    model = model_of()
    made = helper.make_function(
        "f", "F", [], ["w_out"], [constant(weight())], [helper.make_opsetid("", 21)], [],
        [helper.make_attribute("default", weight("d"))],
    )  # fmt: skip
    model.functions.append(made)
    return model


def in_lists() -> ModelProto:
    some = helper.make_sparse_tensor(weight("v"), numpy_helper.from_array(np.arange(SIZE), "i"), [SIZE])
    node = helper.make_node("Custom", ["x"], ["z"], domain="c", tensors=[weight("a", 1), weight("b", 2)])
    node.attribute.append(helper.make_attribute("graphs", [graph_with(weight("c")), graph_with(weight("d"))]))
    node.attribute.append(helper.make_attribute("sparse", some))
    node.attribute.append(helper.make_attribute("sparses", [some, some]))
    return model_of(nodes=[node])


def training() -> ModelProto:
    model = model_of(weight())
    model.training_info.add(initialization=graph_with(weight("a")), algorithm=graph_with(weight("b", 3)))
    return model


def unknown_fields() -> bytes:
    strange = wire.varint(999 << 3 | wire.VARINT) + b"\x05" + record(1000, b"?" * 2000)
    inside = weight().SerializeToString() + strange
    return with_initializer(inside) + strange


def unpacked(number: int, kind: int, values: list[bytes]) -> bytes:
    head = TensorProto(name="w", data_type=1, dims=[len(values)]).SerializeToString()
    tag = wire.varint(number << 3 | kind)
    return with_initializer(head + b"".join(tag + value for value in values))


FLOAT_BYTES = [struct.pack("<f", value) for value in FLOATS]
FIELDS: dict[str, TensorProto] = {
    "raw": weight(),
    "raw double": numpy_helper.from_array(RNG.standard_normal(SIZE), "w"),
    "float_data": tensor("float_data", TensorProto.FLOAT, FLOATS),
    "int32_data": tensor("int32_data", TensorProto.INT32, BITS - 128),
    "int8": tensor("int32_data", TensorProto.INT8, BITS - 128),
    "bool": tensor("int32_data", TensorProto.BOOL, BITS & 1),
    "float16": tensor("int32_data", TensorProto.FLOAT16, FLOATS.astype(np.float16).view(np.uint16)),
    "uint16": tensor("int32_data", TensorProto.UINT16, BITS * 250),
    "float8": tensor("int32_data", TensorProto.FLOAT8E5M2, BITS),
    "int64_data": tensor("int64_data", TensorProto.INT64, (BITS - 128) * 2**40),
    "double_data": tensor("double_data", TensorProto.DOUBLE, FLOATS.astype(np.float64) / 3),
    "uint64_data": tensor("uint64_data", TensorProto.UINT64, [int(b) << 56 for b in BITS]),
    "uint32": tensor("uint64_data", TensorProto.UINT32, [int(b) << 24 for b in BITS]),
    "uint4": TensorProto(name="w", data_type=21, dims=[3000], raw_data=bytes(BITS.astype(np.uint8))),
    "int4": TensorProto(name="w", data_type=22, dims=[3000], int32_data=[int(b) for b in BITS]),
    "complex64": TensorProto(name="w", data_type=14, dims=[750], float_data=FLOATS),
    "doc and metadata": tensor("float_data", TensorProto.FLOAT, FLOATS, doc_string="d"),
}
STRINGS = tensor("string_data", TensorProto.STRING, [b"\xff%d" % n for n in range(SIZE)])
RAW = record(9, FLOATS.tobytes())
HEAD = TensorProto(name="w", data_type=1, dims=[SIZE]).SerializeToString()
MODELS: dict[str, ModelProto | bytes] = {
    **{name: model_of(made) for name, made in FIELDS.items()},
    "strings": model_of(STRINGS),
    "nothing large": model_of(numpy_helper.from_array(np.arange(3), "w")),
    "many": model_of(*(weight(f"w{n}", n) for n in range(40))),
    "sparse": sparse(),
    "subgraphs": in_if(),
    "constants": model_of(nodes=[constant(weight("a")), constant(weight("b", 1))]),
    "function": in_function(),
    "lists": in_lists(),
    "training": training(),
    "unknown fields": unknown_fields(),
    "says default": model_of(tensor("float_data", TensorProto.FLOAT, FLOATS, data_location=TensorProto.DEFAULT)),
    "unknown location": with_initializer(HEAD + b"\x70\x05" + RAW),
    "stray external_data": with_initializer(HEAD + record(13, record(1, b"location") + record(2, b"x")) + RAW),
    "fields out of order": with_initializer(RAW + record(8, b"late") + b"\x10\x01" + record(1, b"\x88\x27")),
    "raw_data twice": with_initializer(HEAD + RAW + record(12, b"doc") + record(9, FLOATS[::-1].tobytes())),
    "unpacked floats": unpacked(4, wire.FIXED32, FLOAT_BYTES),
    "unpacked ints": unpacked(5, wire.VARINT, [wire.varint(int(b)) for b in BITS]),
    "half packed": with_initializer(
        HEAD + record(4, b"".join(FLOAT_BYTES[:700])) + record(8, b"v") + record(4, b"".join(FLOAT_BYTES[700:]))
    ),
    "long way to say a length": with_initializer(HEAD + b"\x4a\xf0\xae\x80\x00" + FLOATS.tobytes()),
    "text not UTF-8": with_initializer(HEAD + record(12, b"\xff\xfe") + RAW),
}  # fmt: skip


def serialised(model: ModelProto | bytes) -> bytes:
    return model if isinstance(model, bytes) else model.SerializeToString()


def tensors(message: Any) -> Iterator[TensorProto]:
    """Returns every tensor in a message, found without help of the code under test."""
    if isinstance(message, TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if hasattr(value, "__len__") else [value]:
                yield from tensors(item)


def digest(made: TensorProto) -> str:
    return hashlib.sha256(made.SerializeToString(deterministic=True)).hexdigest()


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def elements(made: TensorProto) -> bytes:
    """Returns the elements as they lie in memory."""
    if made.data_type == TensorProto.COMPLEX64:  # which older releases of onnx do not read from float_data
        return made.raw_data or np.array(made.float_data, "<f4").tobytes()
    return numpy_helper.to_array(made).tobytes()


def external(location: str, offset: int | None = None, size: int | None = None, elements: int = SIZE) -> TensorProto:
    made = TensorProto(name="w", data_type=1, dims=[elements], data_location=TensorProto.EXTERNAL)
    for key, value in ("location", location), ("offset", offset), ("length", size):
        if value is not None:
            made.external_data.add(key=key, value=str(value))
    return made


def saved(folder: Path, model: ModelProto, **data_files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.onnx").write_bytes(model.SerializeToString())
    for name, content in data_files.items():
        target = folder / name.replace("__", "/")
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)
    return folder / "a.onnx"
