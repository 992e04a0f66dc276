# SPDX-License-Identifier: Apache-2.0
"""What the benchmark runs in processes of its own: makes model files, and measures what happens inside one process.

`python workloads.py NAME ARGUMENTS...` prints its findings as JSON. The benchmark itself stays small, because the peak
memory of a process counts what its parent held when it was started.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.shape_inference
import onnx.version_converter
from onnx import ModelProto, TensorProto, helper

import onnx_convert

SIDE = 1600  # a weight is float32 [SIDE, SIDE], about 10 MB
LAYERS = 100


def layered(megabytes: int, opset: int = 12) -> ModelProto:
    """100 layers of MatMul, Unsqueeze and Squeeze with random weights of `megabytes` in all."""
    random = np.random.default_rng(0)
    side = int((megabytes * 1e6 / LAYERS / 4) ** 0.5)
    graph = onnx.GraphProto(name="layers")
    value = "x"
    graph.input.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, side]))
    for layer in range(LAYERS):
        raw = random.bytes(4 * side * side)
        graph.initializer.add(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[side, side], raw_data=raw)
        steps = (("MatMul", [value, f"w{layer}"], {}), ("Unsqueeze", [f"a{layer}"], {"axes": [0]}),
                 ("Squeeze", [f"b{layer}"], {"axes": [0]}))  # fmt: skip
        for letter, (operator, inputs, attributes) in zip("abc", steps, strict=True):
            node = helper.make_node(operator, inputs, [f"{letter}{layer}"], f"{operator}_{layer}", **attributes)
            graph.node.append(node)
        value = f"c{layer}"
    graph.output.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, side]))
    return helper.make_model(graph, ir_version=7, opset_imports=[helper.make_opsetid("", opset)])


def chain(nodes: int, opset: int, *, softmax: bool) -> ModelProto:
    """A chain of nodes of float32 [2, 3, 4]; every fourth is a Softmax over the middle axis if `softmax`."""
    cycle = ["Relu", "Add", "Mul", "Softmax" if softmax else "Sigmoid"]
    graph = onnx.GraphProto(name="chain")
    for number in range(nodes):
        operator, value = cycle[number % 4], f"v{number}"
        inputs = [value, "bias"] if operator in ("Add", "Mul") else [value]
        attributes = {"axis": 1} if operator == "Softmax" else {}
        graph.node.append(helper.make_node(operator, inputs, [f"v{number + 1}"], f"{operator}_{number}", **attributes))
    graph.input.append(helper.make_tensor_value_info("v0", TensorProto.FLOAT, [2, 3, 4]))
    graph.output.append(helper.make_tensor_value_info(f"v{nodes}", TensorProto.FLOAT, [2, 3, 4]))
    graph.initializer.add(name="bias", data_type=TensorProto.FLOAT, dims=[4], raw_data=bytes(16))
    return helper.make_model(graph, ir_version=7, opset_imports=[helper.make_opsetid("", opset)])


# ---- files


def make_file(path: str, megabytes: str) -> None:
    """The layers, in one file."""
    onnx.save(layered(int(megabytes)), path)


def make_external(path: str, megabytes: str) -> None:
    """The layers, with their weights in a file beside."""
    name = Path(path).name + ".data"
    onnx.save(layered(int(megabytes)), path, save_as_external_data=True, location=name, all_tensors_to_one_file=True)


def make_small(path: str) -> None:
    """Eight nodes."""
    onnx.save(chain(8, 12, softmax=True), path)


# ---- competitors, each a whole process


def load_and_save(source: str, destination: str) -> None:
    """What a script has to do before it has changed anything."""
    onnx.save(onnx.load(source), destination)


def cpp(source: str, destination: str) -> None:
    """The converter of onnx, from file to file."""
    onnx.save(onnx.version_converter.convert_version(onnx.load(source), 13), destination)


# ---- inside a process


def seconds(run: Callable[[], object]) -> float:
    """Returns the processor time that it takes, once, with the rubbish of earlier runs collected."""
    gc.collect()
    started = time.process_time()
    run()
    return time.process_time() - started


def medians(rounds: int, **runs: Callable[[], object]) -> dict[str, float]:
    """Returns the median of each, measured in turns; an unmeasured round warms up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            took = seconds(run)
            if number or not rounds:
                times[name].append(took)
    return {name: statistics.median(found) for name, found in times.items()}


def infer(model: ModelProto) -> object:
    """One strict inference."""
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def upgrade(nodes: str, rounds: str, with_cpp: str) -> dict[str, float]:
    """Nothing to rewrite."""
    model = chain(int(nodes), 13, softmax=False)
    runs: dict[str, Callable[[], object]] = {
        "infer": lambda: infer(model),
        "convert": lambda: onnx_convert.convert(model, to=17),
    }
    if with_cpp == "True":
        runs["cpp"] = lambda: onnx.version_converter.convert_version(model, 17)
    return medians(int(rounds), **runs)


def rewrite(nodes: str, rounds: str, with_cpp: str) -> dict[str, float]:
    """A quarter of the nodes is rewritten."""
    model = chain(int(nodes), 12, softmax=True)
    found = medians(int(rounds), infer=lambda: infer(model), convert=lambda: onnx_convert.convert(model, to=13))
    if with_cpp == "True":
        found["cpp"] = seconds(lambda: onnx.version_converter.convert_version(model, 13))
    return found


def scaling(nodes: str, rounds: str) -> dict[str, float]:
    """The same nodes in one model and in ten, all results kept: as much work on as much data. Beside it what one strict
    inference of them costs, which outgrows the caches in a large model."""
    ten = [chain(int(nodes), 12, softmax=True) for _ in range(10)]
    one = chain(10 * int(nodes), 12, softmax=True)
    return medians(
        int(rounds),
        ten=lambda: [onnx_convert.convert(model, to=13) for model in ten],
        one=lambda: onnx_convert.convert(one, to=13),
        infer_ten=lambda: [infer(model) for model in ten],
        infer_one=lambda: infer(one),
    )


def in_place(megabytes: str) -> dict[str, float]:
    """Returns what the conversion of a model in memory adds to the peak of the process."""
    onnx_convert.convert(chain(8, 12, softmax=True), to=13)  # whatever is imported or cached for the first one
    model = layered(int(megabytes))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the making
    before = memory("VmRSS")
    took = seconds(lambda: onnx_convert.convert(model, to=13, in_place=True))
    return {"seconds": took, "extra": memory("VmHWM") - before, "model": float(model.ByteSize())}


def bytes_read(source: str, destination: str) -> dict[str, float]:
    """Returns how much a conversion from file to file reads, of whatever file."""
    onnx_convert.convert(chain(8, 12, softmax=True), to=13)  # whatever is imported for the first one
    before = bytes_so_far()
    with onnx_convert.convert(source, to=13) as conversion:
        conversion.save(destination)
    return {"read": bytes_so_far() - before}


def bytes_so_far() -> float:
    """Returns what this process has read, whether from the disk or from memory."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("rchar"))


def memory(field: str) -> float:
    """Returns a figure of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
