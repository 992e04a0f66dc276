# SPDX-License-Identifier: Apache-2.0
"""Models as torch and scikit-learn are exported, moved down to 9 and up to the newest opset.

At each target onnxruntime has to compute the same, or the model has to be refused for the reason that its row tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from real.moving import LANDMARKS, Feeds, Growth, count_nodes, move, newest, session

import onnx_convert
from oracle import compare, opset_of

pytestmark = pytest.mark.real

NOWHERE: Mapping[int, str] = {}

try:
    from real import torch_images, torch_layers, torch_transformers
    from real.torch_rows import Row, export, outputs
except ModuleNotFoundError as absent:
    TORCH, TORCH_ROWS = f'{absent.name} is not installed: pip install -e ".[exports]"', []
else:
    _rows = (*torch_transformers.TRANSFORMERS, *torch_images.IMAGES, *torch_layers.SEQUENCES, *torch_layers.LAYERS)
    TORCH, TORCH_ROWS = "", [(row, opset) for row in _rows for opset in row.opsets]

try:
    from real import sklearn_models
except ModuleNotFoundError as absent:
    SKLEARN, SKLEARN_ROWS = f'{absent.name} is not installed: pip install -e ".[exports]"', []
else:
    SKLEARN, SKLEARN_ROWS = "", [(row, opset) for row in sklearn_models.ROWS for opset in row.opsets]


@pytest.mark.skipif(bool(TORCH), reason=TORCH)
@pytest.mark.parametrize(("row", "opset"), TORCH_ROWS, ids=[f"{row}@{opset}" for row, opset in TORCH_ROWS])
def test_torch(row: Row, opset: int, growth: Growth, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    module, arguments = export(row, opset, path), [row.inputs(0), row.inputs(1)]
    names = [value.name for value in onnx.load(path).graph.input]
    several = [dict(zip(names, (x.numpy() for x in given), strict=True)) for given in arguments]
    expected = _run(path, several, row.unable) or [outputs(module, given) for given in arguments]
    _move(f"{row}", path, several, expected, growth, row.refused, row.unable)


@pytest.mark.skipif(bool(SKLEARN), reason=SKLEARN)
@pytest.mark.parametrize(("row", "opset"), SKLEARN_ROWS, ids=[f"{row}@{opset}" for row, opset in SKLEARN_ROWS])
def test_sklearn(row: sklearn_models.Row, opset: int, growth: Growth, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    several = [sklearn_models.export(row, opset, path)]
    _move(f"{row}", path, several, _run(path, several), growth)


def _move(
    name: str,
    path: Path,
    several: Sequence[Feeds],
    expected: Any,
    growth: Growth,
    refused: Mapping[int, str] = NOWHERE,
    unable: str = "",
) -> None:
    """To each target, all of which are tried before anything is said."""
    start, faults = opset_of(onnx.load(path)), []
    counts = growth.setdefault((name, start, count_nodes(path)), {})
    for target in (newest(), *(landmark for landmark in LANDMARKS if landmark < start)):
        reason = next((reason for last, reason in refused.items() if target <= last), None)
        try:
            moved = move(path, target, path.parent)
            counts[target] = f"{count_nodes(moved)}"
            assert reason is None, f"not refused, although {reason}"
            got = _run(moved, several, unable)
            if got is None:
                counts[target] += "?"
                continue
            for one, other in zip(expected, got, strict=True):
                assert (difference := compare(one, other)) is None, difference
        except onnx_convert.RefusedError as error:
            if reason is None or not all(reason in str(refusal) for refusal in error.refusals):
                faults.append(f"{target}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the other targets are of interest
            faults.append(f"{target}: {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults)


def _run(path: Path, several: Sequence[Feeds], unable: str = "") -> list[list[np.ndarray]] | None:
    """Returns the outputs for all inputs; None where onnxruntime does not run the model, and says this."""
    try:
        running = session(path)
        return [running.run(None, feeds) for feeds in several]
    except Exception as error:
        if not unable or unable not in str(error):
            raise
        return None
