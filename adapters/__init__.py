# SPDX-License-Identifier: Apache-2.0
"""How each operator crosses each of its version boundaries: one file a family, up and down side by side.

Importing this package fills the registry. An adapter knows `registry` (to register itself), `site` (what it may ask)
and the emitter that it is handed (what it may write), and nothing else.
"""

from onnx_convert.adapters import axes, casting, compatible, dtypes, softmax

__all__ = ["axes", "casting", "compatible", "dtypes", "softmax"]
