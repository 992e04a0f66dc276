# SPDX-License-Identifier: Apache-2.0
"""Writes a model: a skeleton with its payloads spliced in, its data files beside it; all files or none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto

from onnx_convert.errors import InvalidModelError, UsageError
from onnx_convert.model.wire import Piece, Span, joined, length
from onnx_convert.storage.files import Closed, delivery, holds
from onnx_convert.storage.layout import External, Layout, serialised
from onnx_convert.storage.skeleton import PAYLOAD_MINIMUM
from onnx_convert.storage.source import open_bytes
from onnx_convert.storage.splice import pour
from onnx_convert.storage.tensor_data import external_data

if TYPE_CHECKING:
    from onnx_convert.storage.skeleton import ModelFile


PROTOBUF_MAXIMUM = 2**31 - 1
"""Bytes of the largest message that protobuf reads."""


Progress = Callable[[int, int, str], None]
"""Called with the bytes done and all bytes of the whole writing, and the name of the file at work."""


class Writing(NamedTuple):
    """The outcome that a writing has left.

    `bytes` counts the model's own file; `data_files` were written or copied, `shared_data` stay where they are and are
    pointed at. `switched_to_external`: the model would have outgrown protobuf's 2 GiB, its weights went to a data file.
    `replaced`: the model's own file took the place of another. `inodes` are those of the files that were written.
    """

    path: Path
    bytes: int
    data_files: tuple[Path, ...] = ()
    shared_data: tuple[Path, ...] = ()
    switched_to_external: bool = False
    replaced: bool = False
    inodes: frozenset[int] = frozenset()


def write(
    model: ModelProto,
    destination: str | os.PathLike[str],
    source: ModelFile | None,
    *,
    external: External = External.KEEP,
    external_name: str | None = None,
    size_threshold: int = PAYLOAD_MINIMUM,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Writing:
    """Writes a (converted) skeleton of `source`, or any model (source None), with its payloads; all files or none.

    External data follow into another folder. SAVE puts tensors of at least `size_threshold` bytes, external ones too,
    into `external_name`, a file beside the destination ("<destination>.data" if None). A model file is replaced, a data
    file only with `overwrite`; one that holds the same bytes already is shared.
    UsageError: a destination that cannot be; InvalidModelError: payloads or external data
    that are not there; OSError: disk full, no permission.
    """
    path = Path(destination)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, not a file")
    there = Path(os.path.abspath(path)).parent
    if (path.exists() and not path.is_file()) or there.parts[1:2] in (("dev",), ("proc",)):
        # a pipe, a device, another name of an open file: there is nothing to replace
        with path.open("wb") as stream:
            return write_stream(model, stream, source, external=external, progress=progress)._replace(path=path)
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    if source is None:
        source = open_bytes(serialised(model), name="<memory>")
        model = source.model

    name = external_name or f"{path.name}.data"
    if Path(name).name != name or name == path.name:
        raise UsageError(f"{name!r}: the data file needs a name of its own, without a folder")
    layout = Layout(source, external, name, size_threshold, gathers=True)
    pieces = layout.of(model)
    switched = external is not External.SAVE and length(pieces) > PROTOBUF_MAXIMUM
    if switched:
        layout = Layout(source, External.SAVE, name, size_threshold)
        pieces = layout.of(model)
    if length(pieces) > PROTOBUF_MAXIMUM:
        raise InvalidModelError("would take more than 2 GiB even with its weights in a data file", where=str(path))

    copies, shared = _companions(layout, source, path.parent, overwrite)
    data = [(path.parent / name, layout.data)] if layout.data else []
    taken = {os.path.realpath(file) for file in [*shared, *(there for there, _ in copies), *source.data_files]}
    for file in [path, *(there for there, _ in data)]:
        if os.path.realpath(file) in taken:
            raise UsageError(f"{file}: is a data file of the model")
    if data and source.path is not None and os.path.realpath(data[0][0]) == os.path.realpath(source.path):
        raise UsageError(f"{data[0][0]}: is the model itself")
    if data and data[0][0].exists():
        if holds(*data[0]):
            shared.append(data.pop()[0])
        elif not overwrite:
            raise UsageError(
                f"{data[0][0]}: exists already; --save-external-data=NAME takes another, --overwrite-data replaces it"
            )

    files = [*copies, *data, (path, pieces)]
    inodes = set()
    replaced = path.exists()
    done, total = 0, sum(length(parts) for _, parts in files)
    with delivery() as deliver:
        for file, parts in files:

            def tick(count: int, name: str = file.name) -> None:
                nonlocal done
                done += count
                if progress:
                    progress(done, total, name)

            inodes.add(deliver(file, parts, tick))
        source.release(path)
    written = tuple(file for file, _ in files[:-1])
    return Writing(path, length(pieces), written, tuple(shared), switched, replaced, frozenset(inodes))


def write_stream(
    model: ModelProto,
    stream: BinaryIO,
    source: ModelFile | None,
    *,
    external: External = External.KEEP,
    progress: Progress | None = None,
) -> Writing:
    """Writes to an open stream, whose path is "-"; external data stay where they are, or are embedded.

    UsageError for SAVE and for more than protobuf's 2 GiB: both need a data file, and a stream has no folder.
    """
    if external is External.SAVE:
        raise UsageError("a data file needs a folder beside the model: name an output file")
    if source is None:
        source = open_bytes(serialised(model), name="<memory>")
        model = source.model
    layout = Layout(source, external)
    pieces = layout.of(model)
    done, total = 0, length(pieces)
    if total > PROTOBUF_MAXIMUM:
        raise UsageError("more than 2 GiB need a data file: name an output file")

    def tick(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(done, total, "<stdout>")

    pour(pieces, stream, tick)
    stream.flush()
    folder = source.path.parent if source.path is not None else Path()
    shared = {folder / str(external_data(tensor).get("location", "")): None for tensor in layout.external_tensors}
    return Writing(Path("-"), total, shared_data=tuple(shared))


def _companions(
    layout: Layout, source: ModelFile, folder: Path, overwrite: bool
) -> tuple[list[tuple[Path, list[Piece]]], list[Path]]:
    """Returns the data files to copy along (target, content), and those that the written model finds where they are."""
    copies: dict[Path, list[Piece]] = {}
    shared: dict[Path, None] = {}
    stays = source.path is None or os.path.realpath(source.path.parent) == os.path.realpath(folder)
    for tensor in layout.external_tensors:
        location = str(external_data(tensor).get("location", ""))
        there = folder / location
        if there in copies or there in shared:
            continue
        data = None if stays else source.extent(tensor).source
        if not isinstance(data, Closed) or (there.exists() and there.samefile(data.path)):
            shared[there] = None
            continue
        whole: list[Piece] = [Span(data, 0, data.size)]
        if there.exists() and holds(there, whole):
            shared[there] = None
        elif there.exists() and not overwrite:
            raise UsageError(
                f"{there}: exists already, the model's data file of that name would replace it; "
                "another folder, or --save-external-data=NAME, keeps both, --overwrite-data replaces it"
            )
        else:
            copies[there] = whole
    return list(copies.items()), list(shared)


def materialise(source: ModelFile, model: ModelProto) -> ModelProto:
    """Returns a copy of a (converted) skeleton with every placeholder replaced by its tensor; external ones stay so.

    InvalidModelError if a payload cannot be parsed, or if the whole is more than protobuf's 2 GiB.
    """
    full = ModelProto()
    try:
        full.ParseFromString(joined(Layout(source, External.KEEP).of(model)))
    except DecodeError as error:
        raise InvalidModelError(f"cannot be held as one message: {error}", where=source.name) from error
    source.check_unchanged()
    return full


def write_report(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file, whole or not at all."""
    with delivery() as deliver:
        deliver(Path(path), [text.encode("utf-8", "backslashreplace")], lambda _: None)


def append_line(path: str | os.PathLike[str], text: str) -> None:
    """Adds a line to a text file."""
    with open(path, "ab") as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")
