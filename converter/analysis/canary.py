# SPDX-License-Identifier: Apache-2.0
"""Gives a suspicious view to onnx's inference and checker in a process of its own first, which may die: a crash of C++
code would take the caller's process along."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

_SECONDS: Final = 20
_MEMORY: Final = 4 << 30  # bytes of address space

_CODE: Final = f"""
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
import onnx.checker, onnx.shape_inference
data = sys.stdin.buffer.read()
for strict in True, False:
    for data_prop in False, True:
        try:
            onnx.shape_inference.infer_shapes(data, check_type=strict, strict_mode=strict, data_prop=data_prop)
        except MemoryError:
            sys.exit(3)
        except Exception:
            pass
try:
    onnx.checker.check_model(data)
except Exception:
    pass
"""


def survives(serialised: bytes) -> bool:
    """Tells whether onnx gets through a serialised view, in seconds and with a few gigabytes. True where no process
    can be started."""
    if not sys.executable:
        return True
    try:
        done = subprocess.run(  # noqa: S603 - our own code, in our own interpreter
            [sys.executable, "-I", "-c", _CODE],
            input=serialised,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    except OSError:
        return True
    return done.returncode >= 0 and done.returncode != 3
