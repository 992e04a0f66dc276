# SPDX-License-Identifier: Apache-2.0
"""External data follow, move in or move out; and whatever fails, nothing is left half done."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from payloads import (
    FIELDS,
    FLOATS,
    MODELS,
    SIZE,
    constant,
    elements,
    external,
    listing,
    model_of,
    saved,
    serialised,
    tensors,
    weight,
)

import onnx_convert
from onnx_convert.errors import InvalidModelError, UsageError
from onnx_convert.storage import files, skeleton, writer
from onnx_convert.storage.layout import External
from onnx_convert.storage.source import check_external, open_bytes, open_model
from onnx_convert.storage.writer import write, write_stream

# --- external data --------------------------------------------------------------------------------------------------


def test_external_tensors_are_read_lazily(tmp_path: Path) -> None:
    rows = [external("w", 4, SIZE * 4), external("w", 8, 12, 3), external("w", 4), external("sub/v", elements=2)]
    path = saved(tmp_path, model_of(*rows), w=b"head" + FLOATS.tobytes(), sub__v=FLOATS[:2].tobytes())
    with open_model(path) as source:
        check_external(source)
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
    "no location": (external(""), "not a file name"),
    "zero byte": (external("a\0b"), "not a file name"),
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
            lambda: check_external(source),
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
        check_external(source)


def test_data_of_a_model_from_a_pipe() -> None:
    data = model_of(external("w")).SerializeToString()
    with open_bytes(data) as source, pytest.raises(InvalidModelError, match="no folder"):
        check_external(source)


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
        assert set(written.shared_data) == {out / "w", out / "sub" / "v"}


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


def test_a_data_file_does_not_replace_the_model(tmp_path: Path) -> None:
    path = saved(tmp_path, model_of(weight()))
    before = path.read_bytes()
    with open_model(path) as source, pytest.raises(UsageError, match="is the model itself"):
        write(
            source.model, tmp_path / "b.onnx", source, external=External.SAVE, external_name=path.name, overwrite=True
        )
    assert path.read_bytes() == before
    assert not (tmp_path / "b.onnx").exists()


def test_save_gathers_what_is_external_already(tmp_path: Path) -> None:
    rows = [external("w"), external("sub/v", 8, 8, 2), weight("e")]
    path = saved(tmp_path / "in", model_of(*rows), w=FLOATS.tobytes(), sub__v=b"ABCDEFGH12345678")
    (tmp_path / "out").mkdir()
    for folder, threshold in (("in", 1024), ("in", 0), ("out", 0)):
        out = tmp_path / folder / f"{threshold}.onnx"
        with open_model(path) as source:
            written = write(source.model, out, source, external=External.SAVE, external_name=f"{threshold}.bin",
                            size_threshold=threshold)  # fmt: skip
        assert written.data_files == (out.with_suffix(".bin"),)
        assert written.shared_data == ((path.parent / "sub" / "v",) if threshold else ())
        for made, expected in zip(onnx.load(out).graph.initializer, onnx.load(path).graph.initializer, strict=True):
            np.testing.assert_array_equal(numpy_helper.to_array(made), numpy_helper.to_array(expected))
        bare = onnx.load(out, load_external_data=False)
        places = {skeleton.external_data(tensor)["location"] for tensor in bare.graph.initializer}
        assert places == {f"{threshold}.bin", *(["sub/v"] if threshold else [])}
    with open_bytes(path.read_bytes()) as source, pytest.raises(InvalidModelError, match="has no folder"):
        write(source.model, tmp_path / "out" / "c.onnx", source, external=External.SAVE)


def test_a_stream_says_what_it_points_to(tmp_path: Path) -> None:
    path = saved(tmp_path, model_of(external("w"), weight("e")), w=FLOATS.tobytes())
    with onnx_convert.convert(path, to="latest") as conversion:
        conversion.write(io.BytesIO())
    assert conversion.report.shared_data == [str(tmp_path / "w")]
    assert [text for text in conversion.report.warnings if "external data" in text and text.endswith(": w")]


def test_a_model_that_changed_since_is_not_mixed(tmp_path: Path) -> None:
    path = saved(tmp_path, model_of(weight()))
    with onnx_convert.convert(path, to="latest") as conversion:
        data = path.read_bytes()
        path.write_bytes(data.replace(FLOATS[:2].tobytes(), FLOATS[2:4].tobytes()))
        os.utime(path, ns=(0, 0))
        with pytest.raises(InvalidModelError, match="changed"):
            conversion.model  # noqa: B018  (which reads the weights)


def test_embed(tmp_path: Path) -> None:
    path = saved(tmp_path, model_of(external("w", 4), nodes=[constant(external("v"))]), w=b"head" + FLOATS.tobytes(),
                 v=FLOATS[::-1].tobytes())  # fmt: skip
    expected = onnx.load(path)
    for made in tensors(expected):
        made.ClearField("data_location")
    with open_model(path) as source:
        written = write(source.model, tmp_path / "b.onnx", source, external=External.EMBED)
    status = (tmp_path / "b.onnx").stat()
    assert written == writer.Writing(tmp_path / "b.onnx", status.st_size, inodes=frozenset({status.st_ino}))
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
        assert elements(after) == elements(before)


def test_save_moves_initializers_and_constants_only(tmp_path: Path) -> None:
    for name, moved in {"subgraphs": 5, "lists": 2, "function": 1, "strings": 0, "sparse": 0, "training": 3}.items():
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
    monkeypatch.setattr(writer, "PROTOBUF_MAXIMUM", 10_000)
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
        monkeypatch.setattr(writer, "PROTOBUF_MAXIMUM", 100)
        with pytest.raises(InvalidModelError, match="even with its weights"):
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
