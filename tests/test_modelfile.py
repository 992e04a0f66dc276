# SPDX-License-Identifier: Apache-2.0
"""What goes in comes out: payloads are lifted and spliced bit for bit, damage is named, nothing is left half done."""

from __future__ import annotations

import hashlib
import io
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnx_convert import files, modelfile, wire
from onnx_convert.errors import InternalError, InvalidModelError, UsageError
from onnx_convert.modelfile import External, open_bytes, open_model, write, write_stream

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
    """A model whose first initializer consists of these very bytes."""
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
    "float4": TensorProto(name="w", data_type=23, dims=[3000], raw_data=bytes(BITS.astype(np.uint8))),
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


@pytest.fixture(params=MODELS, ids=lambda name: name.replace(" ", "-"))
def data(request: pytest.FixtureRequest) -> bytes:
    return serialised(MODELS[request.param])


def tensors(message: Any) -> Iterator[TensorProto]:
    """Every tensor in a message, found without help of the code under test."""
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


# --- round trips ----------------------------------------------------------------------------------------------------


def test_round_trip_is_equal(data: bytes, tmp_path: Path) -> None:
    path, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    path.write_bytes(data)
    with open_model(path) as source:
        written = write(source.model, out, source)
    before, after = onnx.load(path), onnx.load(out)
    assert after == before
    assert [digest(t) for t in tensors(after)] == [digest(t) for t in tensors(before)]
    assert written == modelfile.Written(out, out.stat().st_size)
    assert listing(tmp_path) == {"a.onnx", "b.onnx"}


def test_bytes_stream_and_materialise_are_equal(data: bytes) -> None:
    stream = io.BytesIO()
    with open_bytes(data) as source:
        before = ModelProto.FromString(data)
        assert write_stream(source.model, stream, source) == len(stream.getvalue())
        assert ModelProto.FromString(stream.getvalue()) == before
        assert source.materialise(source.model) == before
        for bare, full in zip(tensors(source.model), tensors(before), strict=True):
            assert source.tensor(bare) == full


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"nothing large"}))
def test_skeleton_has_no_payload(name: str) -> None:
    with open_bytes(serialised(MODELS[name])) as source:
        assert any(source.is_placeholder(t) for t in tensors(source.model))
        for made in tensors(source.model):
            assert (
                sum(len(getattr(made, field)) for field in ("raw_data", "float_data", "int32_data", "int64_data")) < 400
            )
            if source.is_placeholder(made):
                assert made.data_location == TensorProto.EXTERNAL
                assert made.external_data[-1].value.startswith("\0")


def test_explicit_default_location_comes_back() -> None:
    for name, explicit in ("says default", True), ("float_data", False):
        with open_bytes(serialised(MODELS[name])) as source:
            full = source.materialise(source.model).graph.initializer[0]
        assert full.HasField("data_location") is explicit


def test_small_tensors_stay() -> None:
    model = model_of(
        TensorProto(name="below", data_type=2, dims=[1000], raw_data=bytes(1000)),
        TensorProto(name="above", data_type=2, dims=[1024], raw_data=bytes(1024)),
        TensorProto(name="large doc", data_type=2, dims=[1], raw_data=b"1", doc_string="d" * 5000),
    )
    with open_bytes(model.SerializeToString()) as source:
        assert [source.is_placeholder(t) for t in source.model.graph.initializer] == [False, True, False]
        small = source.model.graph.initializer[0]
        assert source.tensor(small) is small


def test_skeleton_may_be_changed(tmp_path: Path) -> None:
    """Placeholders move into nodes and subgraphs, are copied, renamed, dropped, and gain company."""
    path, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model_of(weight("keep", 1), weight("drop", 2), weight("move", 3)), path)
    with open_model(path) as source:
        graph = source.model.graph
        keep, _, move = graph.initializer
        node = constant(move)
        keep.name = "renamed"
        inside = graph_with(keep)
        del graph.initializer[1:]
        graph.initializer.append(weight("new", 4))
        graph.node.insert(0, node)
        graph.node.append(helper.make_node("If", ["c"], ["z"], then_branch=inside, else_branch=inside))
        write(source.model, out, source)
    after = onnx.load(out)
    values = {t.name: numpy_helper.to_array(t) for t in tensors(after)}
    assert sorted(t.name for t in tensors(after)) == ["move", "new", "renamed", "renamed", "renamed"]
    for name, seed in ("renamed", 1), ("move", 3), ("new", 4):
        np.testing.assert_array_equal(values[name], numpy_helper.to_array(weight("", seed)))
    assert not any(t.HasField("data_location") for t in tensors(after))


def test_a_placeholder_lost_on_the_way_is_our_bug(tmp_path: Path) -> None:
    data = model_of(weight()).SerializeToString()
    with open_bytes(data) as one, open_bytes(data) as other:
        with pytest.raises(InternalError, match="of another file"):
            write(one.model, tmp_path / "b.onnx", other)
        one.model.metadata_props.add(key=one.model.graph.initializer[0].external_data[0].value)
        with pytest.raises(InternalError, match="no tensor belongs"):
            write(one.model, tmp_path / "b.onnx", one)
    assert listing(tmp_path) == set()


@pytest.mark.parametrize("absent", ["copy_file_range", "pread"])
def test_without_help_of_the_kernel(absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, absent, raising=False)
    big = numpy_helper.from_array(RNG.standard_normal(50_000), "w")
    onnx.save(model_of(big), tmp_path / "a.onnx")
    with open_model(tmp_path / "a.onnx") as source:
        write(source.model, tmp_path / "b.onnx", source)
    assert onnx.load(tmp_path / "b.onnx") == model_of(big)


@pytest.mark.skipif(not hasattr(os, "copy_file_range"), reason="the platform has no copy_file_range")
@pytest.mark.parametrize("fails_after", [0, 1])
def test_kernel_copy_that_fails_is_taken_over(
    fails_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, calls = os.copy_file_range, []

    def fails(source: int, target: int, count: int, offset: int) -> int:
        calls.append(count)
        if len(calls) > fails_after:
            raise OSError(18, "Invalid cross-device link")
        return kernel(source, target, 1000, offset)

    monkeypatch.setattr(os, "copy_file_range", fails)
    big = numpy_helper.from_array(RNG.standard_normal(50_000), "w")
    onnx.save(model_of(big), tmp_path / "a.onnx")
    with open_model(tmp_path / "a.onnx") as source:
        write(source.model, tmp_path / "b.onnx", source)
    assert onnx.load(tmp_path / "b.onnx") == model_of(big)
    assert len(calls) == fails_after + 1


# --- damage ---------------------------------------------------------------------------------------------------------


def chopped(name: str, step: int) -> list[bytes]:
    data = serialised(MODELS[name])
    return [data[:stop] for stop in range(0, len(data), step)]


@pytest.mark.parametrize(
    ("name", "step"), [("nothing large", 1), ("raw", 53), ("subgraphs", 199), ("unpacked floats", 7), ("sparse", 211)]
)
def test_truncation_is_always_named(name: str, step: int) -> None:
    for data in chopped(name, step):
        if _well_formed(data):
            continue  # cut between two fields of the model, with all it needs
        with pytest.raises(InvalidModelError, match=r"^<stdin>: is (empty|no ONNX model|damaged)[^\n]*$"):
            open_bytes(data)


def _well_formed(data: bytes) -> bool:
    try:
        model = ModelProto.FromString(data)
    except Exception:
        return False
    return model.HasField("graph") and bool(model.opset_import)


def test_truncation_leaves_no_way_out() -> None:
    """At every byte of a small model: its opset import is its last field, so no prefix is a model."""
    assert not any(map(_well_formed, chopped("nothing large", 1)))


@pytest.mark.parametrize("name", ["nothing large", "raw", "subgraphs", "lists", "unpacked ints", "unknown fields"])
def test_flipped_bytes_give_an_error_or_a_model(name: str) -> None:
    data, dice = serialised(MODELS[name]), random.Random(name)
    edges = [0, *range(1, 400), *range(len(data) - 300, len(data))]
    opened = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(dice.randint(1, 3)):
            damaged[dice.choice(edges) % len(data)] = dice.randrange(256)
        try:
            with open_bytes(bytes(damaged)) as source:
                for made in tensors(source.model):
                    source.tensor(made)
                source.check_external()
                write_stream(source.model, io.BytesIO(), source)
                assert source.materialise(source.model) == ModelProto.FromString(bytes(damaged))
                opened += 1
        except InvalidModelError as error:
            assert "\n" not in str(error)
    assert 0 < opened < 400


def deep(levels: int, core: bytes = b"") -> bytes:
    for _ in range(levels):
        core = record(1, record(5, record(6, core)))  # a node, its attribute, a graph
    return b"\x08\x0a" + record(7, core) + record(8, b"\x10\x15")


LARGE = record(5, RAW)
NO_MODEL: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "text": (b"hello, world, this is no model at all", "no ONNX model"),
    "zip": (b"PK\x03\x04" + bytes(40), "no ONNX model"),
    "LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
    "no graph": (b"\x08\x0a", "no graph"),
    "no opset": (b"\x08\x0a" + record(7, b""), "no opset"),
    "group": (b"\x0b\x0c", r"wire type 3.*byte 0"),
    "unknown wire type": (b"\x08\x0a\x0f", r"wire type 7.*byte 2"),
    "endless number": (b"\x08" + b"\xff" * 11, "more than 10 bytes"),
    "endless length": (b"\x3a" + b"\xff" * 9 + b"\x01", "truncated"),
    "length past the end": (record(7, record(1, b"\x0a\x40")) + b"\x08\x0a", "damaged"),
    "large length past the end": (
        record(7, b"\x2a\xff\x7f" + bytes(2000)) + b"\x08\x0a",
        "past the end of its message",
    ),
    "too deep": (deep(34), "damaged"),
    "too deep, large": (deep(34, LARGE), "nested more than 100 deep"),
    "hopelessly deep": (deep(3000, LARGE), "nested more than 100 deep"),
}


@pytest.mark.parametrize(("data", "why"), NO_MODEL.values(), ids=NO_MODEL)
def test_no_model(data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(data)
    with pytest.raises(InvalidModelError, match=why) as caught:
        open_model(path)
    assert caught.value.where == str(path)


def test_deep_but_legal() -> None:
    with open_bytes(deep(32, LARGE)) as source:
        assert source.materialise(source.model) == ModelProto.FromString(deep(32, LARGE))


@pytest.mark.parametrize(
    ("name", "why"), [("", "folder"), ("absent", "No such file"), ("a\0b", "null|zero"), ("fifo", "regular")]
)
def test_no_file(name: str, why: str, tmp_path: Path) -> None:
    if name == "fifo":
        if not hasattr(os, "mkfifo"):
            pytest.skip("the platform has no named pipes")
        os.mkfifo(tmp_path / name)
    with pytest.raises(InvalidModelError, match=why):
        open_model(tmp_path / name)


def test_file_changed_in_the_meantime(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save(model_of(weight()), path)
    with open_model(path) as source:
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(InvalidModelError):
            write(source.model, tmp_path / "b.onnx", source)
    assert listing(tmp_path) == {"a.onnx"}


# --- external data --------------------------------------------------------------------------------------------------


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


def test_external_tensors_are_read_lazily(tmp_path: Path) -> None:
    rows = [external("w", 4, SIZE * 4), external("w", 8, 12, 3), external("w", 4), external("sub/v", elements=2)]
    path = saved(tmp_path, model_of(*rows), w=b"head" + FLOATS.tobytes(), sub__v=FLOATS[:2].tobytes())
    with open_model(path) as source:
        source.check_external()
        found = [source.tensor(t) for t in source.model.graph.initializer]
        for made, expected in zip(found, [FLOATS, FLOATS[1:4], FLOATS, FLOATS[:2]], strict=True):
            np.testing.assert_array_equal(numpy_helper.to_array(made), expected)
            assert not made.external_data
        assert not any(map(source.is_placeholder, source.model.graph.initializer))
        assert list(source.model.graph.initializer) == rows


BAD_EXTERNAL: dict[str, tuple[TensorProto, str]] = {
    "absent": (external("absent"), r"'w'.*'absent'.*No such file"),
    "up": (external("../w"), "leads out"),
    "up inside": (external("sub/../../x/w"), "leads out"),
    "absolute": (external("/etc/hostname"), "leads out"),
    "link out": (external("link"), "link leads out"),
    "folder link out": (external("up/secret"), "link leads out"),
    "folder": (external("sub"), "not a regular file"),
    "no location": (external(""), "no file name"),
    "zero byte": (external("a\0b"), "no file name"),
    "short": (external("w", 8, SIZE * 4), r"6000 bytes needed, 5996 present at offset 8"),
    "short, no length": (external("w", 40), "6000 bytes needed"),
    "offset past the end": (external("w", 10**9, SIZE * 4), "0 present"),
    "short by its own word": (external("w", 0, 100), "6000 bytes needed, its length says 100"),
    "negative": (external("w", -1), "negative"),
    "no number": (external("w", "x"), "not a number"),  # type: ignore[arg-type]
}


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs privileges there")
@pytest.mark.parametrize(("made", "why"), BAD_EXTERNAL.values(), ids=BAD_EXTERNAL)
def test_bad_external_data(made: TensorProto, why: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "in", model_of(made), w=bytes(4) + FLOATS.tobytes(), sub__x=b"")
    (tmp_path / "secret").write_bytes(bytes(10000))
    (tmp_path / "in" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "up").symlink_to(tmp_path)
    (tmp_path / "out").mkdir()
    with open_model(path) as source:
        for attempt in (
            lambda: source.tensor(source.model.graph.initializer[0]),
            source.check_external,
            lambda: write(source.model, tmp_path / "out" / "b.onnx", source),
            lambda: write(source.model, tmp_path / "out" / "b.onnx", source, external=External.EMBED),
        ):
            with pytest.raises(InvalidModelError, match=why) as caught:
                attempt()
            assert caught.value.where == str(path)
    assert listing(tmp_path / "out") == set()


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs privileges there")
def test_links_into_a_common_store(tmp_path: Path) -> None:
    """As download caches lay it out: model and data are links into one folder of contents."""
    blob = saved(tmp_path / "blobs", model_of(external("w")), w=FLOATS.tobytes())
    (tmp_path / "snapshot").mkdir()
    for name in "a.onnx", "w":
        (tmp_path / "snapshot" / name).symlink_to(blob.parent / name)
    with open_model(tmp_path / "snapshot" / "a.onnx") as source:
        source.check_external()


def test_data_of_a_model_from_a_pipe() -> None:
    with open_bytes(model_of(external("w")).SerializeToString()) as source:
        with pytest.raises(InvalidModelError, match="no folder"):
            source.check_external()


def test_same_folder_shares_the_data(tmp_path: Path) -> None:
    path = saved(tmp_path, model_of(external("w"), external("w", 0, 8, 2), weight("e")), w=FLOATS.tobytes())
    with open_model(path) as source:
        written = write(source.model, tmp_path / "b.onnx", source)
    assert written.shared_data == (tmp_path / "w",)
    assert written.data_files == ()
    assert onnx.load(tmp_path / "b.onnx") == onnx.load(path)


def test_another_folder_gets_the_data(tmp_path: Path) -> None:
    model = model_of(external("w"), external("sub/v", 0, 8, 2), weight("e"))
    path = saved(tmp_path / "in", model, w=FLOATS.tobytes(), sub__v=b"12345678")
    out = tmp_path / "out"
    out.mkdir()
    calls: list[tuple[int, int, str]] = []
    with open_model(path) as source:
        written = write(source.model, out / "b.onnx", source, progress=lambda *call: calls.append(call))
        assert written.data_files == (out / "w", out / "sub" / "v")
        assert onnx.load(out / "b.onnx") == onnx.load(path)
        assert [name for _, _, name in calls][:2] == ["w", "v"]
        assert calls[-1] == (calls[0][1], sum(p.stat().st_size for p in out.rglob("*") if p.is_file()), "b.onnx")
        (out / "w").write_bytes(b"mine")
        with pytest.raises(UsageError, match="exists already"):
            write(source.model, out / "b.onnx", source)
        assert (out / "w").read_bytes() == b"mine"
        write(source.model, out / "b.onnx", source, overwrite=True)
        assert onnx.load(out / "b.onnx") == onnx.load(path)
        (out / "w").unlink()
        os.link(path.parent / "w", out / "w")
        written = write(source.model, out / "b.onnx", source, overwrite=True)
        assert written.shared_data == (out / "w",)


def test_a_model_does_not_replace_its_data(tmp_path: Path) -> None:
    path = saved(tmp_path / "in", model_of(external("w")), w=FLOATS.tobytes())
    (tmp_path / "out").mkdir()
    with open_model(path) as source:
        for target in tmp_path / "in" / "w", tmp_path / "out" / "w":
            for mode in External.KEEP, External.EMBED:
                if mode is External.EMBED and target.parent.name == "out":
                    continue  # the data are embedded: that name is free
                with pytest.raises(UsageError, match="data file of the model"):
                    write(source.model, target, source, external=mode, overwrite=True)
        source.model.graph.initializer.append(weight("e"))
        with pytest.raises(UsageError, match="data file of the model"):
            write(source.model, path, source, external=External.SAVE, external_name="w", overwrite=True)
    assert (tmp_path / "in" / "w").read_bytes() == FLOATS.tobytes()


def test_embed(tmp_path: Path) -> None:
    path = saved(tmp_path, model_of(external("w", 4), nodes=[constant(external("v"))]), w=b"head" + FLOATS.tobytes(),
                 v=FLOATS[::-1].tobytes())  # fmt: skip
    expected = onnx.load(path)
    for made in tensors(expected):
        made.ClearField("data_location")
    with open_model(path) as source:
        written = write(source.model, tmp_path / "b.onnx", source, external=External.EMBED)
    assert written == modelfile.Written(tmp_path / "b.onnx", (tmp_path / "b.onnx").stat().st_size)
    assert ModelProto.FromString((tmp_path / "b.onnx").read_bytes()) == expected


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("through", ["file", "memory"])
def test_save_moves_the_same_elements(name: str, through: str, tmp_path: Path) -> None:
    path, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model_of(FIELDS[name], weight("v")), path)
    if through == "file":
        with open_model(path) as source:
            written = write(source.model, out, source, external=External.SAVE)
    else:
        written = write(onnx.load(path), out, None, external=External.SAVE)
    assert written.data_files == (tmp_path / "b.onnx.data",)
    assert written.bytes < 700
    bare = onnx.load(out, load_external_data=False).graph.initializer
    entries = [{e.key: e.value for e in made.external_data} for made in bare]
    assert [e["location"] for e in entries] == ["b.onnx.data"] * 2
    assert [int(e["offset"]) % 4096 for e in entries] == [0, 0]
    for before, after in zip(onnx.load(path).graph.initializer, onnx.load(out).graph.initializer, strict=True):
        assert (after.name, after.data_type, after.dims, after.doc_string) == (
            before.name, before.data_type, before.dims, before.doc_string,
        )  # fmt: skip
        assert numpy_helper.to_array(after).tobytes() == numpy_helper.to_array(before).tobytes()


def test_save_moves_initializers_and_constants_only(tmp_path: Path) -> None:
    for name, moved in {"subgraphs": 6, "lists": 2, "function": 1, "strings": 0, "sparse": 0, "training": 3}.items():
        out = tmp_path / f"{name}.onnx"
        write(
            ModelProto.FromString(serialised(MODELS[name])),
            out,
            None,
            external=External.SAVE,
            external_name=f"{name}.bin",
        )
        bare = onnx.load(out, load_external_data=False)
        assert sum(t.data_location == TensorProto.EXTERNAL for t in tensors(bare)) == moved, name
        assert (tmp_path / f"{name}.bin").exists() == bool(moved)
        with open_model(out) as source:
            write(source.model, tmp_path / "back.onnx", source, external=External.EMBED)
        assert ModelProto.FromString((tmp_path / "back.onnx").read_bytes()) == ModelProto.FromString(
            serialised(MODELS[name])
        )


def test_save_threshold_and_names(tmp_path: Path) -> None:
    small = numpy_helper.from_array(np.arange(10, dtype=np.float32), "s")
    for threshold, moved in (1024, 1), (41, 1), (40, 2), (0, 2), (10_000, 0):
        write(
            model_of(weight(), small),
            tmp_path / f"{threshold}.onnx",
            None,
            external=External.SAVE,
            size_threshold=threshold,
        )
        bare = onnx.load(tmp_path / f"{threshold}.onnx", load_external_data=False)
        assert sum(t.data_location == TensorProto.EXTERNAL for t in bare.graph.initializer) == moved
    for name in "sub/x", "../x", "c.onnx":
        with pytest.raises(UsageError, match="name of its own"):
            write(model_of(weight()), tmp_path / "c.onnx", None, external=External.SAVE, external_name=name)
    with pytest.raises(UsageError, match="exists already"):
        write(model_of(weight()), tmp_path / "0.onnx", None, external=External.SAVE)


def test_runtime_reads_what_save_wrote(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    nodes = [
        constant(weight("c", 1)),
        helper.make_node("Mul", ["w", "c_out"], ["p"]),
        helper.make_node("Add", ["p", "x"], ["z"]),
    ]
    model = model_of(weight(), nodes=nodes)
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [SIZE]))
    write(model, tmp_path / "b.onnx", None, external=External.SAVE)
    session = runtime.InferenceSession(str(tmp_path / "b.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(["z"], {"x": np.zeros(1, np.float32)})
    np.testing.assert_array_equal(found, numpy_helper.to_array(weight()) * numpy_helper.to_array(weight("c", 1)))


@pytest.mark.parametrize("mode", [External.KEEP, External.EMBED])
def test_too_large_for_one_file(mode: External, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modelfile, "PROTOBUF_MAXIMUM", 10_000)
    path = saved(tmp_path / "in", model_of(weight("a"), weight("b", 1), external("w")), w=FLOATS.tobytes())
    out = tmp_path / "b.onnx"
    with open_model(path) as source:
        written = write(source.model, out, source, external=mode)
        assert written.switched_to_external
        assert written.data_files == (tmp_path / "w", tmp_path / "b.onnx.data")
        for before, after in zip(onnx.load(path).graph.initializer, onnx.load(out).graph.initializer, strict=True):
            np.testing.assert_array_equal(numpy_helper.to_array(after), numpy_helper.to_array(before))
        with pytest.raises(UsageError, match="2 GiB"):
            write_stream(source.model, io.BytesIO(), source)
        monkeypatch.setattr(modelfile, "PROTOBUF_MAXIMUM", 100)
        with pytest.raises(UsageError, match="even with its weights"):
            write(source.model, tmp_path / "c.onnx", source)
    with pytest.raises(UsageError, match="needs a folder"):
        write_stream(model_of(), io.BytesIO(), None, external=External.SAVE)


# --- whole or not at all --------------------------------------------------------------------------------------------


def test_in_place_keeps_mode_and_payload(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save(model_of(weight()), path)
    path.chmod(0o640)
    with open_model(path) as source:
        source.model.producer_name = "changed"
        write(source.model, path, source)
        assert source.tensor(source.model.graph.initializer[0]) == weight()  # still from the old file
    assert onnx.load(path) == model_of(weight(), producer_name="changed")
    assert path.stat().st_mode & 0o777 == 0o640 or sys.platform == "win32"
    assert listing(tmp_path) == {"a.onnx"}


@pytest.mark.skipif(sys.platform == "win32", reason="no umask there")
def test_new_file_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write(model_of(), tmp_path / "a.onnx", None)
    finally:
        os.umask(old)
    assert (tmp_path / "a.onnx").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()], ids=repr
)
@pytest.mark.parametrize("when", ["first", "last", "replace", "second replace"])
def test_failure_leaves_the_old_file_and_nothing_else(
    error: BaseException, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(external("sub/v"), weight("e"))
    path = saved(tmp_path / "in", model, sub__v=FLOATS.tobytes())
    out = tmp_path / "out"
    out.mkdir()
    (out / "b.onnx").write_bytes(b"old")
    calls = {"pour": 0, "replace": 0}

    def failing(name: str, at: int, original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            calls[name] += 1
            if calls[name] == at:
                raise error
            return original(*arguments)

        return call

    name, at = {"first": ("pour", 1), "last": ("pour", 2), "replace": ("replace", 1), "second replace": ("replace", 2)}[
        when
    ]
    owner = files if name == "pour" else os
    with open_model(path) as source:
        monkeypatch.setattr(owner, name, failing(name, at, getattr(owner, name)))
        with pytest.raises(type(error)) as caught:
            write(source.model, out / "b.onnx", source)
    if isinstance(error, OSError):
        assert "cannot be written: No space left" in str(caught.value)
        assert caught.value.filename in {str(out / "b.onnx"), str(out / "sub" / "v")}
    assert (out / "b.onnx").read_bytes() == b"old"
    assert [str(p.relative_to(out)) for p in out.rglob("*")] == ["b.onnx"]


def test_interrupt_while_progress_is_shown(tmp_path: Path) -> None:
    onnx.save(model_of(weight()), tmp_path / "a.onnx")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with open_model(tmp_path / "a.onnx") as source, pytest.raises(KeyboardInterrupt):
        write(source.model, tmp_path / "b.onnx", source, progress=stop)
    assert listing(tmp_path) == {"a.onnx"}


def test_destinations_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        write(model_of(), tmp_path, None)
    with pytest.raises(UsageError, match="no folder"):
        write(model_of(), tmp_path / "absent" / "a.onnx", None)


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="the platform has no /dev/null")
def test_device_is_written_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    assert write(model_of(weight()), tmp_path / "null", None).bytes > SIZE * 4
    assert (tmp_path / "null").is_symlink()


# --- cost -----------------------------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
from onnx_convert.modelfile import open_model, write
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open_model(sys.argv[1]) as source:
    write(source.model, sys.argv[2], source)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the platform does not tell the peak of memory")
def test_memory_does_not_follow_the_weights(tmp_path: Path) -> None:
    """256 MB of payload, a hole in the file, go through in less than 40 MB (the fallback's buffer is 16)."""
    size = 256 << 20
    head = TensorProto(name="w", data_type=2, dims=[size]).SerializeToString() + b"\x4a" + wire.varint(size)
    graph = b"\x2a" + wire.varint(len(head) + size) + head
    model = model_of()
    model.ClearField("graph")
    path, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    with path.open("wb") as file:
        file.write(model.SerializeToString() + b"\x3a" + wire.varint(len(graph) + size) + graph)
        file.truncate(file.tell() + size)
    done = subprocess.run([sys.executable, "-c", MEASURE, path, out], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40 << 20
    assert out.stat().st_size == path.stat().st_size
    out.unlink()
