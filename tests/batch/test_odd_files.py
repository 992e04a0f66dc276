# SPDX-License-Identifier: Apache-2.0
"""Files as they are: with any name, links, pipes, named twice, in each other's way."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from many import SOFTMAX, converted
from texts import model

from onnx_convert import UsageError
from onnx_convert.batch import run
from onnx_convert.batch.collection import find
from onnx_convert.storage import journal

NAMES = ("new\nline.onnx", " sp ace .onnx", "\N{CAT FACE}.onnx", "-lead.onnx", "\x1b[31m.onnx", "[x].onnx", "UP.ONNX")


@pytest.mark.skipif(os.name == "nt", reason="such names are not to be had")
def test_names_may_be_odd(tmp_path: Path) -> None:
    names = (*NAMES, os.fsdecode(b"\xff.onnx"))
    zoo = tmp_path / "zoo.onnx"
    zoo.mkdir()
    for name in names:
        onnx.save(model(SOFTMAX, 12), str(zoo / name))
    assert converted(zoo, tmp_path / "out") == dict.fromkeys(sorted(names), "converted")
    assert converted(zoo, tmp_path / "out") == dict.fromkeys(sorted(names), "up to date")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*names, journal.NAME}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_whatever_is_called_a_model_and_is_none_is_named(zoo: Path, tmp_path: Path) -> None:
    os.mkfifo(zoo / "pipe.onnx")
    os.mkfifo(zoo / "pipe")
    (zoo / "loop.onnx").symlink_to("loop.onnx")
    (zoo / "gone.onnx").symlink_to("nowhere")
    (zoo / "gone").symlink_to("nowhere")
    (zoo / "empty.onnx").touch()
    (zoo / "broken.ONNX").write_bytes(b"\x08")
    (zoo / "link.onnx").symlink_to("a.onnx")
    (zoo / "up").symlink_to("..")
    statuses = converted(zoo, tmp_path / "out")
    failed = {name for name, status in statuses.items() if status == "failed"}
    assert failed == {"pipe.onnx", "loop.onnx", "gone.onnx", "empty.onnx", "broken.ONNX"}
    assert statuses.keys() - failed == {"a.onnx", "link.onnx", "sub/b c.onnx", "sub/deep/network"}
    assert not (tmp_path / "out" / "link.onnx").is_symlink()


def test_a_model_is_one_however_it_is_named(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(zoo)
    (tmp_path / "other").symlink_to(zoo)
    named = ["a.onnx", "./a.onnx", "sub/../a.onnx", zoo / "a.onnx", zoo, tmp_path / "other" / "a.onnx"]
    assert sorted(found.path.name for found in find(named)) == ["a.onnx", "b c.onnx", "network"]


def test_no_result_takes_the_place_of_another_model(zoo: Path) -> None:
    (zoo / "out").mkdir()
    onnx.save(model(SOFTMAX, 12), zoo / "out" / "a.onnx")
    with pytest.raises(UsageError, match="is one of the models, and the result of"):
        converted([zoo / "a.onnx", zoo / "out" / "a.onnx"], zoo / "out")
    (zoo / "out" / "a.onnx").unlink()


def test_results_match_no_pattern(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(zoo)
    for status in ("converted", "up to date"):
        assert converted("**/a.onnx", Path("out")) == {"a.onnx": status}


def test_names_that_are_one_where_the_results_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zoo").mkdir()
    for name in ("case.onnx", "Case.onnx"):
        onnx.save(model(SOFTMAX, 12), tmp_path / "zoo" / name)
    if len([*(tmp_path / "zoo").iterdir()]) == 2:
        assert len(converted(tmp_path / "zoo", tmp_path / "out")) == 2
    monkeypatch.setattr(run, "tells_case_apart", lambda _: False)
    with pytest.raises(UsageError, match=r"'Case.onnx' and 'case.onnx' are one name"):
        converted(tmp_path / "zoo", tmp_path / "other")
