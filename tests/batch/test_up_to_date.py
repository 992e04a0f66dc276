# SPDX-License-Identifier: Apache-2.0
"""What is up to date is left alone, and nothing else is: a result that would differ is made again."""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from many import SOFTMAX, Here, converted
from onnx import numpy_helper
from texts import model

import onnx_convert
from onnx_convert.batch import job, makers
from onnx_convert.rewrite import registry
from onnx_convert.storage import journal
from onnx_convert.storage.journal import is_same, mark


def test_what_is_up_to_date_is_left_alone(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    converted(zoo, out)
    assert set(converted(zoo, out).values()) == {"up to date"}
    assert set(converted(zoo, out, redo=True).values()) == {"converted", "unchanged"}
    assert set(converted(zoo, out, exact=True).values()) == {"converted", "unchanged"}, "other options"
    os.utime(zoo / "a.onnx", (1, 1))
    assert set(converted(zoo, out, exact=True).values()) == {"up to date"}, "another time, the same content"
    onnx.save(model(SOFTMAX.replace("axis = 1", "axis = 2"), 12), zoo / "a.onnx")
    (out / "sub" / "deep" / "network").unlink()
    (out / "sub" / "b c.onnx").write_bytes(b"")
    assert set(converted(zoo, out, exact=True).values()) == {"converted", "unchanged"}
    assert set(converted(zoo, out, exact=True).values()) == {"up to date"}


def test_another_version_of_onnx_does_it_again(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted(zoo, tmp_path / "out")
    monkeypatch.setattr(onnx, "__version__", "another")
    assert set(converted(zoo, tmp_path / "out").values()) == {"converted", "unchanged"}


@pytest.mark.parametrize(
    "damage", [b"", b"\xff\xfe{", b"[1]\n", b'{"name": 3}\n{"na', b'{"name": "a.onnx", "recipe": 1}\n']
)
def test_a_damaged_record_costs_work_and_nothing_else(zoo: Path, tmp_path: Path, damage: bytes) -> None:
    out = tmp_path / "out"
    converted(zoo, out)
    (out / journal.NAME).write_bytes(damage)
    assert set(converted(zoo, out).values()) == {"converted", "unchanged"}
    assert set(converted(zoo, out).values()) == {"up to date"}


def test_a_line_that_was_torn_is_ended_before_the_next(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    converted(zoo, out)
    record = out / journal.NAME
    record.write_bytes(record.read_bytes()[:-30])
    assert sorted(converted(zoo, out).values())[1:] == ["up to date", "up to date"]
    assert set(converted(zoo, out).values()) == {"up to date"}


def test_whoever_stops_goes_on_later(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        ThreadPoolExecutor(1) as executor,
        onnx_convert.convert_many(zoo, to=13, output=out, executor=executor) as batch,
    ):
        first = next(iter(batch))
    assert first.status == "converted"
    again = converted(zoo, out)
    assert again[first.name] == "up to date" and len(again) == 3
    assert {path.name for path in out.rglob("*") if path.is_file()} == {"a.onnx", "b c.onnx", "network", journal.NAME}


AGAIN = {"converted", "unchanged"}


def test_size_and_time_alone_tell_nothing(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights trained anew have the size of the old ones, and builds that can be repeated set all times alike."""
    monkeypatch.setattr(journal, "HASHED", 0)
    path, out = zoo / "a.onnx", tmp_path / "out"
    os.utime(path, (1, 1))
    converted(zoo, out)
    assert set(converted(zoo, out).values()) == {"up to date"}
    path.write_bytes(path.read_bytes().replace(b"Softmax", b"Hardmax"))
    os.utime(path, (1, 1))
    assert converted(zoo, out)["a.onnx"] == "converted"
    result = out / "a.onnx"
    status = result.stat()
    result.write_bytes(result.read_bytes().replace(b"Hardmax", b"Softmax"))
    os.utime(result, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert converted(zoo, out)["a.onnx"] == "converted", "the result was replaced"
    assert b"Hardmax" in result.read_bytes()


def test_what_a_model_was_when_it_was_read_counts(zoo: Path, tmp_path: Path) -> None:
    """A source that is replaced right behind the reader's back is another one next time."""

    class Meddling(Here):
        def submit(self, fn: Any, /, *args: Any, **more: Any) -> Any:
            future = super().submit(fn, *args, **more)
            if args[0].name == "a.onnx":
                onnx.save(model(SOFTMAX.replace("axis = 1", "axis = 2"), 12), zoo / "a.onnx")
            return future

    with onnx_convert.convert_many(zoo, to=13, output=tmp_path / "out", executor=Meddling()) as batch:
        list(batch)
    assert converted(zoo, tmp_path / "out")["a.onnx"] == "converted"


def test_a_source_that_is_replaced_while_it_is_converted_is_not_recorded(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = onnx_convert.Conversion.save

    def replacing(conversion: Any, *args: Any, **more: Any) -> Any:
        report = save(conversion, *args, **more)
        other = zoo / "a.onnx.new"
        onnx.save(model(SOFTMAX.replace("axis = 1", "axis = 2"), 12), str(other))
        other.replace(zoo / "a.onnx")
        return report

    with monkeypatch.context() as patch:
        patch.setattr(onnx_convert.Conversion, "save", replacing)
        converted(zoo / "a.onnx", tmp_path / "out")
    assert converted(zoo / "a.onnx", tmp_path / "out") == {"a.onnx": "converted"}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("place", ["a.onnx", "a.onnx.data"])
def test_what_another_batch_puts_into_the_place_of_a_result_is_not_recorded_as_it(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify: bool, place: str
) -> None:
    """As one with another target does, into the same folder: it is no result of this one."""
    out = tmp_path / "out"
    source = model("(float[1,4] x) => (float[1,4] y) { z = Add (x, b)  y = Softmax (z) }", 12)
    source.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "b"))
    onnx.save(source, zoo / "a.onnx")
    options = {"external": "save", "size_threshold": 1, "overwrite_data": True, "verify": verify}

    replaced: list[object] = []

    def replacing(path: str) -> Any:
        if not replaced:
            replaced.append(shutil.copy(out / place, out / "other"))
            (out / "other").replace(out / place)
        return mark(path)

    with monkeypatch.context() as patch:
        patch.setattr(job, "mark", replacing)
        assert converted(zoo / "a.onnx", out, **options) == {"a.onnx": "converted"}
    assert converted(zoo / "a.onnx", out, **options) == {"a.onnx": "converted"}
    assert converted(zoo / "a.onnx", out, **options) == {"a.onnx": "up to date"}


def test_a_mark_is_of_one_file_although_another_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"one")
    other.write_bytes(b"two")
    look = os.fstat

    def replacing(descriptor: int) -> os.stat_result:
        if other.exists():
            other.replace(path)
        return look(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", replacing)
        seen = mark(path)
    assert path.read_bytes() == b"two"
    assert not is_same(path, seen)


def test_data_files_of_the_source_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "HASHED", 0)
    (tmp_path / "zoo").mkdir()
    proto = model("(float[2, 100] x) => (float[2, 100] y) { y = MatMul (x, w) }", 12)
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((100, 100), np.float32), "w"))
    onnx.save(proto, tmp_path / "zoo" / "a.onnx", save_as_external_data=True, location="w.data")
    data = tmp_path / "zoo" / "w.data"
    converted(tmp_path / "zoo", tmp_path / "out", external="embed")
    assert converted(tmp_path / "zoo", tmp_path / "out", external="embed") == {"a.onnx": "up to date"}
    status = data.stat()
    data.write_bytes(np.full(10000, 2, np.float32).tobytes())
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert converted(tmp_path / "zoo", tmp_path / "out", external="embed") == {"a.onnx": "converted"}


def test_the_runtime_that_is_installed_counts(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--for onnxruntime` without a version means another one after an installation."""
    out = tmp_path / "out"

    def runtime() -> set[str]:
        with onnx_convert.convert_many(zoo, runtime="onnxruntime", output=out, executor=Here()) as batch:
            return {outcome.status for outcome in batch}

    monkeypatch.setattr("onnx_convert.target.runtimes._installed", lambda: "1.14.0")
    runtime()
    assert runtime() == {"up to date"}
    monkeypatch.setattr("onnx_convert.target.runtimes._installed", lambda: "1.8.0")
    assert runtime() <= AGAIN


def test_what_does_not_change_a_result_does_not_count(zoo: Path, tmp_path: Path) -> None:
    converted(zoo, tmp_path / "out", allow=["conditional"])
    assert set(converted(zoo, tmp_path / "out", allow={"conditional"}, overwrite_data=True).values()) == {"up to date"}


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution with adapters, as pip leaves it; its module."""
    info = tmp_path / "site" / "zap_adapters-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zap-adapters\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[onnx_convert.adapters]\nzap = zap_adapters\n")
    module = info.parent / "zap_adapters.py"
    module.write_text("1\n")
    monkeypatch.syspath_prepend(str(info.parent))
    return module


def test_adapters_that_are_installed_count(zoo: Path, tmp_path: Path, plug_in: Path) -> None:
    """Its content does, not its version: who writes adapters tries them."""
    out = tmp_path / "out"
    converted(zoo, out)
    assert set(converted(zoo, out).values()) == {"up to date"}
    plug_in.write_text("2\n")
    assert set(converted(zoo, out).values()) == AGAIN
    (tmp_path / "site" / "zap_adapters-1.0.dist-info" / "entry_points.txt").unlink()
    assert set(converted(zoo, out).values()) == AGAIN


def test_the_code_of_the_package_counts(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of a checkout stays through many changes."""
    converted(zoo, tmp_path / "out")
    own = makers._hash_of_module
    monkeypatch.setattr(makers, "_hash_of_module", lambda name: f"another {own(name)}")
    assert set(converted(zoo, tmp_path / "out").values()) == AGAIN


def test_all_of_the_package_is_looked_at() -> None:
    names = {path.name for name in makers._OWN for path in makers._files(name)}
    assert {"api.py", "softmax.py", "runtimes.toml", "activations.py"} <= names


def test_adapters_of_the_calling_process_count(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    converted(zoo, out)
    monkeypatch.setitem(registry._modules, ("zap", "Zap", 2, "down"), "mine")
    monkeypatch.setitem(registry._decisions, ("zap", "Zap", 2, "down"), registry.Compatible())
    assert set(converted(zoo, out).values()) == AGAIN
    assert set(converted(zoo, out).values()) == AGAIN, "the module has no file to compare"


def test_a_record_does_not_grow_for_ever(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_SLACK", 0)
    for _ in range(5):
        converted(zoo, tmp_path / "out", redo=True)
    converted(zoo, tmp_path / "out")
    record = (tmp_path / "out" / journal.NAME).read_text(encoding="utf-8").splitlines()
    assert len(record) <= 7 and {json.loads(line)["name"] for line in record} >= {"a.onnx"}
    assert set(converted(zoo, tmp_path / "out").values()) == {"up to date"}
    assert {path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")} == {journal.NAME}
