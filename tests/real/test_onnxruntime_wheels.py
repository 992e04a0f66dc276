# SPDX-License-Identifier: Apache-2.0
"""What is converted for an onnxruntime loads in that onnxruntime, and computes the same there.

Each minor release that has a wheel for this Python gets a virtual environment of its own for the time of its test (pip
caches the wheels). Models go there as files, inputs and outputs as .npz. The stamps and the kernels that the table of
runtimes says are missing are looked at too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto
from texts import model

import onnx_convert
from onnx_convert.target import runtimes
from oracle import compare, feeds_for, run

pytestmark = pytest.mark.slow

VERSIONS = [row.version for row in runtimes.listed() if row.name == "onnxruntime"]
VERSIONS = VERSIONS[VERSIONS.index("1.15") :]  # older ones have no wheel for a Python that we run on
NUMPY_2 = VERSIONS.index("1.19")  # the first that was built for it

CONV = """(float[1, 2, 8, 8] x, float[3, 2, 3, 3] w) => (float[1, 3] y)
    <int64[2] axes = {2, 3}, int64[2] shape = {1, 3}> {
    c = Conv <pads = [1, 1, 1, 1]> (x, w)
    r = Relu (c)
    m = ReduceMean (r, axes)
    y = Reshape (m, shape)
}"""
ATTENTION = """(float[2, 4, 8] q, float[2, 4, 8] k, float[2, 4, 8] v, float[8] s, float[8] b) => (float[2, 4, 8] y) {
    t = Transpose <perm = [0, 2, 1]> (k)
    d = MatMul (q, t)
    p = Softmax <axis = -1> (d)
    o = MatMul (p, v)
    n = LayerNormalization (o, s, b)
    y = Gelu (n)
}"""
SAMPLE = """(float[1, 2, 4, 4] x, float[1, 3, 3, 2] g) => (float[1, 2, 3, 3] y)
    { y = GridSample <mode = "linear"> (x, g) }"""
BRANCH = """(bool c, float[2, 3] x) => (float[2, 3] y) { y = If (c) <
    then_branch = t () => (float[2, 3] p) { p = Softmax <axis = 0> (x) },
    else_branch = e () => (float[2, 3] q) { q = Identity (x) }> }"""
BINARIZER = "(float[2, 3] x) => (float[2, 3] y) { y = ai.onnx.ml.Binarizer <threshold = 0.25> (x) }"
DEFORM = """(float[1, 1, 3, 3] x, float[1, 1, 2, 2] w, float[1, 8, 2, 2] o) => (float[1, 1, 2, 2] y)
    { y = DeformConv (x, w, o) }"""

MODELS: dict[str, ModelProto] = {
    "conv": model(CONV, 21, ir=10),
    "attention": model(ATTENTION, 21, ir=10),
    "sample": model(SAMPLE, 21, ir=10),
    "branch": model(BRANCH, 21, ir=10),
    "binarizer": model(BINARIZER, 21, ir=10, ai_onnx_ml=5),
    "deform": model(DEFORM, 19, ir=9),
}

RUN = """
import json, pathlib, sys
import numpy, onnxruntime
onnxruntime.set_default_logger_severity(4)
told = {"version": onnxruntime.__version__}
for path in pathlib.Path(sys.argv[1]).glob("*.onnx"):
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        if path.with_suffix(".in.npz").exists():
            feeds = dict(numpy.load(path.with_suffix(".in.npz")))
            numpy.savez(path.with_suffix(".out.npz"), *session.run(None, feeds))
        told[path.stem] = ""
    except Exception as error:
        told[path.stem] = str(error)
print(json.dumps(told))
"""


def environment(version: str, folder: Path) -> Path:
    """Returns a Python that has this onnxruntime and numpy, and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    numpy = "numpy" if VERSIONS.index(version) >= NUMPY_2 else "numpy<2"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*install, f"onnxruntime=={version}.*", numpy], capture_output=True, text=True, check=False)
    if done.returncode:
        why = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "pip does not say why")
        pytest.skip(f"no onnxruntime {version} to be had: {why}")
    return python


@pytest.mark.parametrize("version", VERSIONS)
def test_a_converted_model_runs_there(version: str, tmp_path: Path) -> None:
    row = runtimes.find(f"onnxruntime@{version}")
    warned, feeds = {}, {}
    for name, source in MODELS.items():
        conversion = onnx_convert.convert(source, runtime=f"onnxruntime@{version}", expand="all")
        conversion.save(tmp_path / f"{name}.onnx")
        warned[name] = bool(conversion.report.warnings)
        feeds[name] = feeds_for(source)
        np.savez(tmp_path / f"{name}.in.npz", **feeds[name])
    for stamp, opset, ir in (("at", 0, 0), ("above_opset", 1, 0), ("above_ir", 0, 1)):
        stamped = model("(float[2] x) => (float[2] y) { y = Relu (x) }", 13)
        stamped.opset_import[0].version, stamped.ir_version = row.opset + opset, row.ir + ir
        onnx.save(stamped, tmp_path / f"{stamp}.onnx")

    with tempfile.TemporaryDirectory() as home:  # a hundred megabytes, which pytest would keep
        python = environment(version, Path(home))
        done = subprocess.run([python, "-c", RUN, tmp_path], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.splitlines()[-1])

    assert told["version"].startswith(f"{version}.")
    assert (told["at"], bool(told["above_opset"]), bool(told["above_ir"])) == ("", True, True)
    for name, source in MODELS.items():
        if warned[name]:
            assert "NOT_IMPLEMENTED" in told[name]
            continue
        assert told[name] == ""
        with np.load(tmp_path / f"{name}.out.npz") as outputs:
            difference = compare(run(source, feeds[name]), [outputs[key] for key in outputs])
        assert difference is None, f"{name}: {difference}"
