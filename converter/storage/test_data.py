# SPDX-License-Identifier: Apache-2.0
"""Inputs of a model in files: an .npz, or a folder of `input_0.pb` or `input_0.npy`, the layout of onnx's test data."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

from onnx_convert.errors import InvalidModelError, UsageError
from onnx_convert.storage.files import File, delivery

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from onnx import TypeProto, ValueInfoProto

_INPUT = re.compile(r"input_(\d+)\.(pb|npy)")


def read(place: str | os.PathLike[str], inputs: Sequence[ValueInfoProto]) -> dict[str, dict[str, Any]]:
    """Returns sets of values by where they come from: of an .npz one, of a folder one, or one for each
    `test_data_set_N` in it.

    `inputs` are those of the model: files of a folder are numbered in their order. UsageError if there are none,
    InvalidModelError if one cannot be read.
    """
    path = Path(place)
    if path.is_dir():
        folders = sorted(folder for folder in path.glob("test_data_set_*") if folder.is_dir()) or [path]
        return {str(folder): _folder(folder, inputs) for folder in folders}
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    if path.suffix != ".npz":
        raise UsageError(f"{path}: inputs are an .npz, or a folder of input_0.pb or input_0.npy")
    data = _bytes(path)
    if not zipfile.is_zipfile(BytesIO(data)):
        raise InvalidModelError("is no .npz", where=str(path))
    try:
        with numpy.load(BytesIO(data), allow_pickle=False) as archive:
            return {str(path): {name: archive[name] for name in archive.files}}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidModelError(f"is no .npz, or damaged: {error}", where=str(path)) from error


def _folder(folder: Path, inputs: Sequence[ValueInfoProto]) -> dict[str, Any]:
    found = sorted(
        (int(match[1]), path) for path in folder.iterdir() if (match := _INPUT.fullmatch(path.name)) is not None
    )
    if not found:
        raise UsageError(f"{folder}: has no input_0.pb or input_0.npy")
    values: dict[str, Any] = {}
    for number, path in found:
        if number >= len(inputs):
            raise UsageError(f"{path}: the model has {len(inputs)} inputs")
        value = inputs[number]
        if value.name in values:
            raise UsageError(f"{path}: input {number} is there twice")
        values[value.name] = _npy(path) if path.suffix == ".npy" else _message(path, value.type)
    return values


def _npy(path: Path) -> numpy.ndarray[Any, Any]:
    data = _bytes(path)
    if not data.startswith(b"\x93NUMPY"):
        raise InvalidModelError("is no .npy", where=str(path))
    try:
        array: numpy.ndarray[Any, Any] = numpy.load(BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidModelError(f"is no .npy, or damaged: {error}", where=str(path)) from error
    return array


def _message(path: Path, kind: TypeProto) -> Any:
    which = kind.WhichOneof("value")
    try:
        if which == "sequence_type":
            return numpy_helper.to_list(SequenceProto.FromString(_bytes(path)))
        if which == "optional_type":
            return numpy_helper.to_optional(OptionalProto.FromString(_bytes(path)))
        return numpy_helper.to_array(TensorProto.FromString(_bytes(path)))
    except (DecodeError, ValueError, TypeError, KeyError) as error:
        raise InvalidModelError(f"is no tensor, or damaged: {error}", where=str(path)) from error


def _bytes(path: Path) -> bytes:
    file = File(path)
    try:
        return file.read(0, file.size)
    finally:
        file.close()


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files to a folder, all or none; names may have folders in them."""
    with delivery() as deliver:
        for name, data in files.items():
            deliver(folder / name, [data], lambda _: None)
