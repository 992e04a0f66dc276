# SPDX-License-Identifier: Apache-2.0
"""Asks an onnxruntime, with which this is run, what kernels it lists and which models of one node it takes.

python ask.py PROBES ANSWERS OPSET ML: the probes are read, and the answers are written line by line, so that what was
answered before a crash is there; run again, it goes on after the one that crashed. Needs nothing but onnxruntime.
"""

import base64
import json
import sys
from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

RUNS, NO_KERNEL, CRASHED = "runs", "no kernel", "crashed"
MISSING = ("Could not find an implementation", "NOT_IMPLEMENTED", "not an implementation")


def kernels() -> list[object] | None:
    """Returns the list of kernels, which some builds do not tell."""
    if not hasattr(state, "get_all_opkernel_def"):
        return None
    return [
        [
            kernel.domain,
            kernel.op_name,
            *kernel.version_range,
            {k: sorted(v) for k, v in kernel.type_constraints.items()},
        ]
        for kernel in state.get_all_opkernel_def()
    ]


def answer(message: bytes) -> str:
    """Returns what comes of loading a model: RUNS, NO_KERNEL, or another error."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(message, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001
        text = " ".join(str(error).split())
        return NO_KERNEL if any(part in text for part in MISSING) else text[:300]
    return RUNS


def main() -> None:
    """Answers all probes that these opsets have, each at its first and its last opset, and at those between where the
    answers differ or the probe wants them; the stamp is the last byte of a message."""
    probes = json.loads(Path(sys.argv[1]).read_text())
    opset, ml = int(sys.argv[3]), int(sys.argv[4])
    path = Path(sys.argv[2])
    done = path.read_text().splitlines() if path.exists() else []
    onnxruntime.set_default_logger_severity(4)
    with path.open("a") as file:
        if not done:
            file.write(json.dumps(kernels()) + "\n")
        elif done[-1].count("\t") == 1:
            file.write(f"\t{CRASHED}\n")
        start = int(done[-1].split("\t")[0]) + 1 if len(done) > 1 else 0

        def told(index: int, stamp: int, message: bytes) -> str:
            file.write(f"{index}\t{stamp}")
            file.flush()
            came = answer(message[:-1] + bytes([stamp]))
            file.write(f"\t{came}\n")
            return came

        for index, (domain, version, first, last, every, text) in enumerate(probes):
            message = base64.b64decode(text)
            if index < start or version > (ml if domain else opset):
                continue
            low, high = (opset, opset) if domain else (first, min(last, opset))
            ends = {told(index, stamp, message) for stamp in dict.fromkeys((low, high))}
            if every or len(ends) > 1:
                for stamp in range(low + 1, high):
                    told(index, stamp, message)


if __name__ == "__main__":
    main()
