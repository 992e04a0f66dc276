# SPDX-License-Identifier: Apache-2.0
"""Moves a file to another opset, and compares the two in onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnx import TensorProto, helper

import onnx_convert
from onnx_convert.verification import evaluators
from oracle import all_nodes, compare

# For a model, its opset and its number of nodes: the number of nodes at each target that was reached.
Growth = dict[tuple[str, int, int], dict[int, str]]

# Opsets at which some runtime stopped.
LANDMARKS = (17, 15, 13, 12, 11, 9)

Feeds = Mapping[str, Any]


def session(model: Path | bytes) -> onnxruntime.InferenceSession:
    return evaluators.session_of(model if isinstance(model, bytes) else str(model))


@lru_cache(maxsize=1)
def newest() -> int:
    """Returns the newest opset of which the installed onnxruntime loads a model."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    for opset in range(onnx.defs.onnx_opset_version(), 0, -1):
        imports = [helper.make_opsetid("", opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))
        try:
            session(model.SerializeToString())
        except Exception:  # noqa: BLE001 - onnxruntime has several ways to say that it is too old
            continue
        return opset
    raise AssertionError("onnxruntime loads no opset")


def check(path: Path, several: Iterable[Feeds], opset: int, folder: Path) -> None:
    """A moved file has to compute what the file does, for all of these inputs."""
    moved, before = move(path, opset, folder), session(path)
    after = session(moved)
    for feeds in several:
        difference = compare(before.run(None, feeds), after.run(None, feeds))
        assert difference is None, difference


def move(path: Path, opset: int, folder: Path) -> Path:
    """Moves the file to another opset: legal, and without a warning."""
    moved = folder / f"opset{opset}.onnx"
    with onnx_convert.convert(path, to=opset) as conversion:
        conversion.save(moved)
        assert not conversion.report.warnings
    onnx.checker.check_model(str(moved), full_check=True)
    return moved


def count_nodes(path: Path) -> int:
    """Returns how many nodes there are, those of subgraphs and functions included."""
    return sum(1 for _ in all_nodes(onnx.load(path, load_external_data=False)))
