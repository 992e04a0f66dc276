# SPDX-License-Identifier: Apache-2.0
"""Sessions of people at the command line, kept as text: what they type, and what they read.

`python tests/helpers/transcripts.py` writes them anew, to be read before they are committed. A line that begins with $
is a command, what follows is printed by it, and [exit N] stands behind one that does not end with 0. `cat FILE |`
feeds a file to stdin; `make MODEL` makes one of `MODELS`.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import onnx.parser
from click.testing import CliRunner
from onnx import ModelProto, numpy_helper

from onnx_convert.cli.main import main

FOLDER: Final = Path(__file__).parents[1] / "cli" / "transcripts"
MOST: Final = 60  # lines that one command may print in a transcript


def detector() -> ModelProto:
    """Returns the head of a detector as exporters write it at opset 19."""
    return parsed(
        19,
        """(float[1, 3, 8, 8] image) => (float[1, 256, 4] boxes, int64[m, 3] kept) <int64[1] most = {10},
        float[1] iou = {0.5}, float[1] score = {0.2}, int64[3] flat = {1, 256, 4}, int64[3] row = {1, 1, 256},
        int64[1] axes = {2}, float[4] scales = {1, 1, 2, 2}> {
          c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (image, w)
          r = HardSwish (c)
          u = Resize <mode = "nearest"> (r, , scales)
          f = Reshape (u, flat)
          boxes = Sigmoid (f)
          m1 = ReduceMean <keepdims = 0> (boxes, axes)
          s = Reshape (m1, row)
          kept = NonMaxSuppression (boxes, s, most, iou, score) }""",
        w=np.ones((4, 3, 3, 3), np.float32),
    )


def classifier() -> ModelProto:
    """Returns a small classifier at opset 18, IR version 9."""
    graph = "(float[n, 4] x) => (float[n, 2] y) { h = MatMul (x, w)  y = Softmax <axis = -1> (h) }"
    model = parsed(18, graph, w=np.ones((4, 2), np.float32))
    model.ir_version = 9
    return model


def brain() -> ModelProto:
    """Returns the policy of a game agent at opset 20."""
    graph = "(float[1, 4] obs) => (float[1, 2] act) { h = MatMul (obs, w)  g = Gelu (h)  act = Tanh (g) }"
    return parsed(20, graph, w=np.ones((4, 2), np.float32))


def decoder() -> ModelProto:
    """Returns a piece of a language model at opset 21, in float16."""
    graph = "(int64[b, s] ids) => (float16[b, s, 32] y) { h = Gather (table, ids)  y = LayerNormalization (h, scale) }"
    return parsed(21, graph, table=np.ones((64, 32), np.float16), scale=np.ones(32, np.float16))


def old() -> ModelProto:
    """Returns a network of 2017, with consumed_inputs and is_test."""
    graph = """(float[1, 1, 4, 4] data, float[2, 1, 3, 3] w, float[2] s, float[2] b) => (float[1, 2, 2, 2] out) {
      c = Conv <kernel_shape = [3, 3]> (data, w)
      n = BatchNormalization <is_test = 1, consumed_inputs = [0, 0, 0, 1, 1], epsilon = 0.001> (c, s, b, b, s)
      d = Dropout <is_test = 1> (n)
      out = Relu (d) }"""
    ones = np.ones(2, np.float32)
    model = parsed(3, graph, w=np.ones((2, 1, 3, 3), np.float32), s=ones, b=ones)
    model.ir_version = 3
    return model


def gate() -> ModelProto:
    """Returns a model with an operator of a domain of its author's."""
    return parsed(17, "(float[2] x) => (float[2] y) { g = org.looms.Bobbin (x)  y = Relu (g) }", org_looms=2)


def words() -> ModelProto:
    """Returns a model that nothing before opset 20 can express."""
    return parsed(20, "(string[n] a, string[n] b) => (string[n] y) { y = StringConcat (a, b) }")


MODELS: Final[dict[str, Callable[[], ModelProto]]] = {
    made.__name__: made for made in (detector, classifier, brain, decoder, old, gate, words)
}


def parsed(opset: int, graph: str, **more: np.ndarray | int) -> ModelProto:
    """Returns a model of a graph in ONNX's text form; arrays become weights, numbers are opsets of other domains."""
    domains = {"": opset, **{name.replace("_", "."): v for name, v in more.items() if isinstance(v, int)}}
    imports = ", ".join(f'"{domain}" : {version}' for domain, version in domains.items())
    ir = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", max(opset, 8))])
    model = onnx.parser.parse_model(f"<ir_version: {ir}, opset_import: [{imports}]>\ng {graph}")
    for name, value in more.items():
        if isinstance(value, np.ndarray):
            model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def written(command: str) -> None:
    """Makes the model that `make MODEL PATH [DATA]` asks for, with its weights in a file DATA if one is named."""
    _, name, path, *data = shlex.split(command)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    model = MODELS[name]()
    if data:
        onnx.save(model, path, save_as_external_data=True, location=data[0], size_threshold=0)
    else:
        onnx.save(model, path)


def printed(command: str) -> str:
    """Runs a command; returns what it prints, without what differs from run to run, and how it ends."""
    fed, _, line = command.rpartition(" | ")
    given = Path(shlex.split(fed)[1]).read_bytes() if fed else None
    result = CliRunner().invoke(main, shlex.split(line)[1:], input=given)
    text = result.stderr if fed and "-o" not in line and "--check" not in line else result.stdout + result.stderr
    ending = f"[exit {result.exit_code}]\n" if result.exit_code else ""
    return timeless(text) + ending


def timeless(text: str) -> str:
    """Returns a text without seconds, and without sizes of files and opsets that depend on the installed onnx."""
    text = re.sub(r"in \d+[.]\d+ s\b", "in T s", text)
    text = re.sub(r"\((\d+ bytes|[\d.]+ [kM]B)\)", "(SIZE)", text)
    text = re.sub(rf"\bto {onnx.defs.onnx_opset_version()}\n", "to NEWEST\n", text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def commands(transcript: str) -> list[str]:
    """Returns the commands of a transcript, its heading as the first."""
    return [line.removeprefix("$ ") for line in transcript.splitlines() if line.startswith(("$ ", "# "))]


def played(transcript: str) -> str:
    """Returns the transcript of the same commands as they run now, in an empty folder."""
    told: list[str] = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for command in commands(transcript):
                if command.startswith("# "):
                    told.append(f"{command}\n")
                    continue
                told.append(f"\n$ {command}\n")
                if command.startswith("make "):
                    written(command)
                else:
                    told.append(printed(command))
        finally:
            os.chdir(before)
    return "".join(told)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.txt")):
        path.write_text(played(path.read_text(encoding="utf-8")), encoding="utf-8")
