# SPDX-License-Identifier: Apache-2.0
"""What people type, and what they read, word for word: sessions of eight kinds of users, in `transcripts/`."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from transcripts import FOLDER, MOST, played

SESSIONS = sorted(FOLDER.glob("*.txt"))


def test_there_are_eight() -> None:
    assert len(SESSIONS) == 8


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 25, reason="an older onnx explains what it knows in other words")
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_reads_as_it_is_kept(path: Path) -> None:
    assert played(path.read_text(encoding="utf-8")) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_nobody_is_left_without_a_way_on(path: Path) -> None:
    """What fails says what to type, or is the fault of nobody's typing; nothing is called a bug or fills the screen."""
    text = path.read_text(encoding="utf-8")
    assert "this is a bug" not in text and "Traceback" not in text and "[exit 70]" not in text
    for answer in text.split("\n$ ")[1:]:
        command, _, printed = answer.partition("\n")
        assert len(printed.splitlines()) <= MOST, command
        if "[exit 2]" in printed:
            ways = ("--", "-o ", "quotes", "did you mean", "follows an @", "MODEL", "22.12")
            assert any(way in printed for way in ways), command
