# SPDX-License-Identifier: Apache-2.0
"""What goes in comes out: payloads are lifted and spliced bit for bit, and damage is named."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto, helper, numpy_helper
from payloads import (
    MODELS,
    RAW,
    RNG,
    constant,
    digest,
    graph_with,
    listing,
    model_of,
    record,
    serialised,
    tensors,
    weight,
)

from onnx_convert.errors import InternalError, InvalidModelError
from onnx_convert.model import wire
from onnx_convert.storage import writer
from onnx_convert.storage.source import check_external, open_bytes, open_model
from onnx_convert.storage.writer import materialise, write, write_stream


@pytest.fixture(params=MODELS, ids=lambda name: name.replace(" ", "-"))
def data(request: pytest.FixtureRequest) -> bytes:
    return serialised(MODELS[request.param])


# --- round trips ----------------------------------------------------------------------------------------------------


def test_round_trip_is_equal(data: bytes, tmp_path: Path) -> None:
    path, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    path.write_bytes(data)
    with open_model(path) as source:
        written = write(source.model, out, source)
    before, after = onnx.load(path), onnx.load(out)
    assert after == before
    assert [digest(t) for t in tensors(after)] == [digest(t) for t in tensors(before)]
    made = out.stat()
    assert written == writer.Writing(out, made.st_size, inodes=frozenset({made.st_ino}))
    assert listing(tmp_path) == {"a.onnx", "b.onnx"}


def test_bytes_stream_and_materialise_are_equal(data: bytes) -> None:
    stream = io.BytesIO()
    with open_bytes(data) as source:
        before = ModelProto.FromString(data)
        assert write_stream(source.model, stream, source).bytes == len(stream.getvalue())
        assert ModelProto.FromString(stream.getvalue()) == before
        assert materialise(source, source.model) == before
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
            full = materialise(source, source.model).graph.initializer[0]
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
        with pytest.raises(InternalError, match="no tensor or text belongs"):
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
        with pytest.raises(InvalidModelError, match=r"^<bytes>: is (empty|no ONNX model|damaged)[^\n]*$"):
            open_bytes(data)


def _well_formed(data: bytes) -> bool:
    try:
        model = ModelProto.FromString(data)
    except DecodeError:
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
                check_external(source)
                write_stream(source.model, io.BytesIO(), source)
                assert materialise(source, source.model) == ModelProto.FromString(bytes(damaged))
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
        assert materialise(source, source.model) == ModelProto.FromString(deep(32, LARGE))


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


# --- cost -----------------------------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
from onnx_convert.storage.source import open_model
from onnx_convert.storage.writer import write
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open_model(sys.argv[1]) as source:
    write(source.model, sys.argv[2], source)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024))
"""


def hole(where: str, size: int) -> bytes:
    """Returns a model but for its last bytes, `size` of them, which are those of a weight or of a text."""
    length = wire.varint(size)
    model = model_of()
    graph = model.graph.SerializeToString()
    if where == "text":
        return model.SerializeToString() + b"\x32" + length
    if where == "unknown field":
        return model.SerializeToString() + wire.varint(999 << 3 | wire.BYTES) + length
    if where == "metadata":
        head = record(1, b"key") + b"\x12" + length
        return model.SerializeToString() + b"\x72" + wire.varint(len(head) + size) + head
    model.ClearField("graph")
    if where == "weight":
        head = TensorProto(name="w", data_type=2, dims=[size]).SerializeToString() + b"\x4a" + length
        graph += b"\x2a" + wire.varint(len(head) + size) + head
    else:
        node = helper.make_node("EPContext", ["x"], ["z"], domain="com.microsoft").SerializeToString()
        head = onnx.AttributeProto(name="cache", type=3).SerializeToString() + b"\x22" + length
        head = node + b"\x2a" + wire.varint(len(head) + size) + head
        graph += b"\x0a" + wire.varint(len(head) + size) + head
    return model.SerializeToString() + b"\x3a" + wire.varint(len(graph) + size) + graph


@pytest.mark.skipif(sys.platform == "win32", reason="the platform does not tell the peak of memory")
@pytest.mark.parametrize("size", [64 << 20, pytest.param(1 << 30, marks=pytest.mark.slow)], ids=["64MB", "1GB"])
@pytest.mark.parametrize("where", ["weight", "text", "unknown field", "metadata", "attribute"])
def test_memory_does_not_follow_weights_and_texts(where: str, size: int, tmp_path: Path) -> None:
    """A payload that is a hole in the file goes through in less than 40 MB (the fallback's buffer is 16)."""
    path, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    with path.open("wb") as file:
        file.write(hole(where, size))
        file.truncate(file.tell() + size)
    done = subprocess.run([sys.executable, "-c", MEASURE, path, out], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40 << 20
    assert out.stat().st_size == path.stat().st_size
    out.unlink()
