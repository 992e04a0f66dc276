# SPDX-License-Identifier: Apache-2.0
"""Names the formats that people take for ONNX, by the first bytes of a file."""

from __future__ import annotations

import re
from typing import Final

_MAGIC: Final = (  # where, what stands there, what it is and what helps
    (0, b"\x1f\x8b", "is compressed with gzip: unpack it first (gunzip)"),
    (0, b"BZh", "is compressed with bzip2: unpack it first (bunzip2)"),
    (0, b"\xfd7zXZ\0", "is compressed with xz: unpack it first (unxz)"),
    (0, b"\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it first (unzstd)"),
    (0, b"7z\xbc\xaf\x27\x1c", "is a 7z archive: unpack it first"),
    (257, b"ustar", "is a tar archive: unpack it first"),
    (4, b"ORTM", "is an ORT model (.ort), made for one onnxruntime: convert the ONNX model that it was made from"),
    (4, b"TFL3", "is a TensorFlow Lite model: tf2onnx makes an ONNX model of it"),
    (0, b"\x89HDF", "is an HDF5 file, a Keras model perhaps: tf2onnx makes an ONNX model of it"),
    (0, b"GGUF", "is a GGUF model, of llama.cpp"),
    (0, b"\x93NUMPY", "is a NumPy array"),
    (0, b"ftrt", "is a TensorRT engine, which cannot be turned back into an ONNX model"),
)
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05][\x8a\x95}cXN(\]]")
_TORCH: Final = "is a PyTorch checkpoint: torch.onnx.export makes an ONNX model of the module"


def named(head: bytes) -> str:
    """Returns what a file is and what helps, by its first bytes (some 16 KB): "is compressed with gzip: ..."; "" for
    one of which nothing is known."""
    for place, magic, what in _MAGIC:
        if head[place : place + len(magic)] == magic:
            return what
    if head.startswith(b"PK\x03\x04"):
        return _TORCH if b"/data.pkl" in head or b"/version" in head else "is a zip archive: unpack it first"
    if head[8:9] == b"{" and b'"dtype"' in head and b'"data_offsets"' in head:
        return "is a safetensors file: weights without a graph"
    if _PICKLE.match(head):
        return (
            _TORCH
            if b"torch" in head or head.startswith(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9")
            else (
                "is a Python pickle, a PyTorch or scikit-learn model perhaps: torch.onnx.export or skl2onnx exports it"
            )
        )
    return _text(head)


def _text(head: bytes) -> str:
    """Returns what a text is; "" for bytes that are none."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # else a sign is cut off
            return ""
        text = head[: error.start].decode()
    if not text or any(sign < " " and sign not in "\t\n\r\f" for sign in text):
        return ""
    start = text.lstrip("\ufeff \t\r\n").lower()
    if start.startswith(("<!doctype html", "<html")):
        return "is a web page: what was downloaded is not the model itself"
    if start.startswith(("<?xml", "<net")):
        return "is an OpenVINO model (.xml)" if "<net" in start else "is XML"
    if re.match(r"<\s*ir_version\s*:", start):
        return "is ONNX in its text form: onnx.parser.parse_model reads it"
    if re.match(r"(ir_version|producer_name)\s*:", start):
        return "is ONNX as protobuf text: onnx.load(path, format='textproto') reads it"
    return "is JSON" if start.startswith(("{", "[")) else "is a text"
