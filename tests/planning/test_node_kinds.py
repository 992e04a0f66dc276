# SPDX-License-Identifier: Apache-2.0
"""Nodes sorted into kinds, and what a description says of kernels."""

from __future__ import annotations

from texts import function, model, with_names

import onnx_convert
from onnx_convert.planning.node_kinds import Kind, kinds_of
from onnx_convert.storage.source import open_source

IDENTITY = "(float[2] x) => (float[2] y) { z = Identity (x) y = Identity (z) }"
BRANCH = """(bool c, float16[2] x) => (float16[2] y) { y = If (c) <
    then_branch = t () => (float16[2] p) { p = Relu (x) },
    else_branch = e () => (float16[2] q) { q = Softmax <axis = 0> (x) }> }"""


def test_nodes_of_one_kind() -> None:
    with open_source(with_names(model(IDENTITY, 19), "a", "b"), None) as source:
        kinds = kinds_of(source)
    assert kinds == {Kind("", "Identity", 19, ("tensor(float)",), ("tensor(float)",), ()): ["a", "b"]}


def test_nodes_of_subgraphs_see_the_types_around_them() -> None:
    with open_source(model(BRANCH, 19), None) as source:
        kinds = {kind.operator: kind for kind in kinds_of(source)}
    assert kinds["Relu"].inputs == ("tensor(float16)",)
    assert kinds["Softmax"].settings == (("axis", 0),)


def test_nodes_of_functions_have_the_types_of_the_calls() -> None:
    graph = "(double[2] x) => (double[2] y) { y = f.F (x) }"
    with open_source(model(graph, 17, function("y = Erf (x)", 17), f=1), None) as source:
        (kind,) = kinds_of(source)
    assert (kind.operator, kind.opset, kind.inputs) == ("Erf", 17, ("tensor(double)",))


def test_a_description_says_what_has_no_kernel() -> None:
    told = onnx_convert.inspect(with_names(model(IDENTITY, 19), "a", "b"))
    assert told.kernels["onnxruntime 1.15"] == ["Identity at opset 19 ('a', 'b')"]
    assert told.kernels["triton 23.06"] == ["Identity at opset 19 ('a', 'b')"]
    assert told.kernels["onnxruntime 1.16"] == []
    assert "onnxruntime 1.14" not in told.kernels  # does not load it
    assert "onnx 1.14" not in told.kernels  # nobody knows
    assert told.to_dict()["kernels"] == told.kernels


SAMPLE = """(float[1, 1, 4, 4] x, float[1, 3, 3, 2] g) => (int32[1, 1, 3, 3] y)
    { s = GridSample (x, g) y = Cast <to = 6> (s) }"""


def test_a_description_says_what_a_provider_leaves_to_the_cpu() -> None:
    told = onnx_convert.inspect(with_names(model(SAMPLE, 18, ir=8), "sample", "cast"))
    assert told.on_cpu["onnxruntime-cuda 1.17"] == ["GridSample at opset 18 ('sample')"]
    assert told.on_cpu["onnxruntime-cuda 1.18"] == []
    assert "onnxruntime-cuda 1.15" not in told.on_cpu  # nobody knows
    assert told.kernels["onnxruntime-cuda 1.17"] == []  # the CPU runs it
    assert "onnxruntime 1.17" not in told.on_cpu
    assert told.to_dict()["on_cpu"] == told.on_cpu


def test_a_plan_says_what_a_provider_leaves_to_the_cpu() -> None:
    source = with_names(model(SAMPLE, 18, ir=8), "sample", "cast")
    notes = onnx_convert.plan(source, runtime="onnxruntime-cuda@1.17").notes
    assert "onnxruntime-cuda 1.17 on CUDA has no kernel for GridSample at opset 18 ('sample'): the CPU runs it" in notes
    notes = onnx_convert.plan(source, runtime="onnxruntime-gpu@1.20").notes
    assert "onnxruntime-cuda 1.20 on CUDA has a kernel for each node" in notes


def test_a_plan_says_it_of_what_nodes_become() -> None:
    """GridSample@20 becomes another version on the way down, and then others where onnxruntime has none at all."""
    source = with_names(model(SAMPLE, 20, ir=9), "sample", "cast")
    notes = onnx_convert.plan(source, runtime="onnxruntime-cuda@1.16").notes
    assert "onnxruntime-cuda 1.16 on CUDA has no kernel for GridSample at opset 19 (nodes: 1): the CPU runs it" in notes
