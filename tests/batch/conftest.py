# SPDX-License-Identifier: Apache-2.0
"""A zoo of models to convert."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from many import SOFTMAX
from onnx import numpy_helper
from texts import model

from onnx_convert.rewrite import registry


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """A folder with models at two levels, one of them under a name without suffix, and other files."""
    folder = tmp_path / "zoo"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    onnx.save(model(SOFTMAX, 12), folder / "a.onnx")
    onnx.save(model(SOFTMAX, 13), folder / "sub" / "b c.onnx")
    onnx.save(model(SOFTMAX, 12), str(folder / "sub" / "deep" / "network"))
    onnx.save(model(SOFTMAX, 12), folder / ".git" / "hidden.onnx")
    (folder / "notes.txt").write_text("no model")
    (folder / "empty.bin").touch()
    onnx.save_tensor(numpy_helper.from_array(np.arange(20)), folder / "input_0.pb")
    return folder


@pytest.fixture(autouse=True)
def _no_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the adapters that other tests have registered in this process."""
    monkeypatch.setattr(registry, "_modules", {})
