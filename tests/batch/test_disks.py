# SPDX-License-Identifier: Apache-2.0
"""Disks that are full, folders that take no file, files that go, others at work in the same folder."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import onnx
import pytest
from many import SOFTMAX, Here, converted, opset
from texts import model

import onnx_convert
from onnx_convert.storage import files, journal

resource = pytest.importorskip("resource", reason="limits of files are told otherwise here")

COMMAND = [sys.executable, "-m", "onnx_convert", "zoo", "-q", "-j", "2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with models of some hundred bytes and, between them, some of 40 KB."""
    (tmp_path / "zoo").mkdir()
    for number in range(6):
        proto = model(SOFTMAX, 12)
        proto.doc_string = "x" * (40_000 if number % 2 else 1)
        onnx.save(proto, tmp_path / "zoo" / f"{number}.onnx")
    return tmp_path


def run(folder: Path, *more: str, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *more], cwd=folder, capture_output=True, text=True, check=False, preexec_fn=limit)


def no_large_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))


def test_what_does_not_fit_is_named_and_the_rest_is_done(folder: Path) -> None:
    done = run(folder, "--to", "13", "-o", "out", limit=no_large_files)
    place = folder / "out"
    assert done.returncode == 4
    assert sorted(done.stderr.splitlines()) == [
        f"failed      {name}.onnx: {place / name}.onnx: cannot be written: File too large" for name in "135"
    ]
    assert {path.name for path in place.iterdir()} == {"0.onnx", "2.onnx", "4.onnx", journal.NAME}
    again = run(folder, "--to", "13", "-o", "out")
    assert (again.returncode, again.stderr) == (0, "") and len([*place.glob("*.onnx")]) == 6


def test_a_report_that_does_not_fit_is_a_warning(folder: Path) -> None:
    done = run(folder, "--to", "13", "-o", "out", "--report", "r.html", limit=no_large_files)
    assert "warning: r.html: the report cannot be written: File too large\n" in done.stderr
    lines = run(
        folder,
        "--to",
        "13",
        "-o",
        "more",
        "--report",
        "r.jsonl",
        limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert lines.stderr.count("warning: r.jsonl: the report cannot be written: File too large\n") == 1, lines.stderr


def test_a_folder_that_takes_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor lets one go, as a file system that can only be read; root may write elsewhere, so the refusal is made up."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "somewhere")

    def opened(path: Any, mode: str = "rb", **more: Any) -> Any:
        return io.FileIO(path, mode, **more) if mode == "rb" else refuse()

    monkeypatch.setattr(files, "FileIO", opened)
    monkeypatch.setattr(Path, "unlink", refuse)
    place = folder / "out"
    with onnx_convert.convert_many(folder / "zoo", to=13, output=place, executor=Here()) as batch:
        told = {outcome.message for outcome in batch}
    assert told == {f"{place / str(n)}.onnx: cannot be written: Read-only file system" for n in range(6)}
    assert batch.exit_code == 4


def test_a_folder_that_cannot_be_made(folder: Path) -> None:
    (folder / "file").touch()
    done = run(folder, "--to", "13", "-o", "file/out")
    assert (done.returncode, done.stderr.count("\n")) == (4, 1) and "file/out: Not a directory" in done.stderr


def test_a_file_that_goes_in_the_middle_is_named(folder: Path) -> None:
    class Clearing(Here):
        def submit(self, fn: Any, /, *args: Any, **more: Any) -> Future[Any]:
            if args[0].name == "1.onnx":
                (folder / "zoo" / "1.onnx").unlink()
            return super().submit(fn, *args, **more)

    with onnx_convert.convert_many(folder / "zoo", to=13, output=folder / "out", executor=Clearing()) as batch:
        said = {outcome.name: outcome.message for outcome in batch if not outcome.ok}
    assert said == {"1.onnx": "cannot be read: No such file or directory"} and batch.exit_code == 4


def test_results_that_go_in_the_middle_are_made_again(folder: Path) -> None:
    with onnx_convert.convert_many(folder / "zoo", to=13, output=folder / "out", executor=Here()) as batch:
        next(iter(batch))
        for path in (folder / "out").iterdir():
            path.unlink()
        assert {outcome.status for outcome in batch} == {"converted"}
    assert set(converted(folder / "zoo", folder / "out").values()) == {"converted"}


def test_two_at_once_with_different_targets(folder: Path) -> None:
    """Each result is one of the two, whole; afterwards either target is reached, and believed."""
    others = [
        subprocess.Popen([*COMMAND, "--to", to, "-o", "out"], cwd=folder, stderr=subprocess.PIPE, text=True)
        for to in ("13", "15")
    ]
    assert [(other.communicate()[1], other.returncode) for other in others] == [("", 0), ("", 0)]
    place = folder / "out"
    assert {opset(path) for path in place.glob("*.onnx")} <= {13, 15}
    assert {path.name for path in place.iterdir()} == {*(f"{number}.onnx" for number in range(6)), journal.NAME}
    for to in (13, 15):
        converted(folder / "zoo", place, to=to)
        assert {opset(path) for path in place.glob("*.onnx")} == {to}


def test_a_record_that_could_not_be_written_whole_costs_one_line(folder: Path) -> None:
    record = journal.Journal(folder, dict)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            record.add("long", {"x" * 300: {}}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    record.add("a", {"a": {}}, {})
    lines = (folder / journal.NAME).read_bytes().splitlines()
    assert len(lines) == 2 and b'"name": "a"' in lines[1]
