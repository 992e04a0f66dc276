# SPDX-License-Identifier: Apache-2.0
"""The models with which rewrites are drawn are those that the rows of the families give."""

from __future__ import annotations

import json

import pytest
import samples

from onnx_convert.spec import opsets

KEPT = samples.FILE.read_text(encoding="utf-8")
NEWEST = max(max(source, target) for source, target, _ in json.loads(KEPT).values())


@pytest.mark.thorough
@pytest.mark.skipif(opsets.latest() < NEWEST, reason=f"this onnx does not know opset {NEWEST}, which samples cross")
def test_samples_are_up_to_date() -> None:
    found, kept = samples.samples(), json.loads(KEPT)
    stale = sorted(name for name in found.keys() | kept.keys() if found.get(name) != kept.get(name))
    assert stale == [], "write them anew: python tests/helpers/samples.py"
    assert samples.text(found) == KEPT
    assert len(found) > 100
