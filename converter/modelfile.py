# SPDX-License-Identifier: Apache-2.0
"""Skeleton in, splice out: the only room (with `files` under it) that opens files.

The weights of a model are neither read nor held. `open_model` walks the file's headers and leaves each *payload* (the
elements of a tensor, 1 KiB or more of them) where it lies; the `ModelProto` that it gives is a skeleton, in which such
a tensor is a *placeholder*: an external tensor whose location no file can have. `write` serialises the skeleton, finds
the placeholders in the bytes and splices the payloads back, from file to file. `ModelFile.tensor` reads one payload
when somebody needs it. Tensors whose data are external in the file itself stay as they are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, StringStringEntryProto, TensorProto

from onnx_convert.errors import InvalidModelError, UsageError
from onnx_convert.files import Closed, File, delivery
from onnx_convert.layout import PAYLOAD_TAGS, External, Layout, bytes_needed, embedded, external_data, serialised
from onnx_convert.wire import (
    VARINT,
    Memory,
    Piece,
    Source,
    Span,
    Trail,
    WireError,
    joined,
    length,
    pour,
    read_varint,
    records,
    rewrite,
)

if TYPE_CHECKING:
    from typing_extensions import Self

PAYLOAD_MINIMUM = 1024
"""Bytes from which on the elements of a tensor stay in the file."""

PROTOBUF_MAXIMUM = 2**31 - 1
"""Bytes of the largest message that protobuf reads."""

_LOCATION_TAG = 14 << 3 | VARINT  # TensorProto.data_location

Progress = Callable[[int, int, str], None]
"""Called with the bytes done and all bytes of the whole writing, and the name of the file at work."""


class Written(NamedTuple):
    """What a writing has left.

    `bytes` counts the model's own file; `data_files` were written or copied, `shared_data` stay where they are and are
    pointed at. `switched_to_external`: the model would have outgrown protobuf's 2 GiB, its weights went to a data file.
    """

    path: Path
    bytes: int
    data_files: tuple[Path, ...] = ()
    shared_data: tuple[Path, ...] = ()
    switched_to_external: bool = False


class _Payload(NamedTuple):
    """The fields of a tensor that the skeleton lacks: stretches of the source, and what it said of its location."""

    stretches: tuple[tuple[int, int], ...]
    location: bytes


class ModelFile:
    """A model on disk (or in bytes) and its skeleton. Holds the file open: close it, or use it in a `with`.

    `model` is the skeleton; it may be changed at will, and placeholders may be moved, copied, renamed and removed.
    `path` is None for bytes, `name` says what messages call it, `size` counts the bytes of the file.
    """

    def __init__(self, source: Source, path: Path | None, name: str) -> None:
        self.path = path
        self.name = name
        self.size = source.size
        self.source = source
        self.mark = f"\0{os.urandom(16).hex()}:"
        self._payloads: list[_Payload] = []
        self._data_sizes: dict[str, tuple[Path, int]] = {}
        self.model = self._parse()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file; no payload can be read or written from now on."""
        if isinstance(self.source, File):
            self.source.close()

    def release(self, destination: Path) -> None:
        """For `write`, when all is spliced and `destination` about to be replaced; looks whether it is unchanged."""
        self.check_unchanged()
        file = self.source
        if os.name == "nt" and isinstance(file, File) and destination.exists() and destination.samefile(file.path):
            self.close()  # Windows does not replace a file that is open

    # --- in -----------------------------------------------------------------------------------------------------

    def _parse(self) -> ModelProto:
        if not self.size:
            raise InvalidModelError("is empty", where=self.name)
        if self.source.window(0)[0].startswith(b"version https://git-lfs"):
            raise InvalidModelError("is a Git LFS pointer, not the model itself (git lfs pull)", where=self.name)
        model = ModelProto()
        try:
            pieces = rewrite(self.source, 0, self.size, lambda start, stop: stop - start >= PAYLOAD_MINIMUM, self._lift)
            model.ParseFromString(joined(pieces or [Span(self.source, 0, self.size)]))
        except (WireError, DecodeError) as error:
            raise InvalidModelError(f"is no ONNX model, or damaged: {error}", where=self.name) from error
        if not model.HasField("graph"):
            raise InvalidModelError("is no ONNX model, or cut off: it has no graph", where=self.name)
        if model.ir_version >= 3 and not model.opset_import:
            raise InvalidModelError("is damaged or cut off: it imports no opset", where=self.name)
        return model

    def _lift(self, start: int, stop: int, _: Trail) -> list[Piece] | None:
        """The tensor at [start, stop) as a placeholder; None if it is external or small."""
        stretches: list[tuple[int, int]] = []
        kept: list[Piece] = []
        location, size, rest = b"", 0, start
        for tag, position, value, end in records(self.source, start, stop):
            if tag in PAYLOAD_TAGS:
                size += end - position
                if stretches and stretches[-1][1] == position:
                    stretches[-1] = (stretches[-1][0], end)
                else:
                    stretches.append((position, end))
            elif tag == _LOCATION_TAG:
                if read_varint(self.source.read(value, end), 0)[0] == TensorProto.EXTERNAL:
                    return None
                location += self.source.read(position, end)
            else:
                continue
            if rest < position:
                kept.append(Span(self.source, rest, position))
            rest = end
        if size < PAYLOAD_MINIMUM:
            return None
        if rest < stop:
            kept.append(Span(self.source, rest, stop))
        entry = StringStringEntryProto(key="location", value=f"{self.mark}{len(self._payloads)}")
        self._payloads.append(_Payload(tuple(stretches), location))
        stand_in = TensorProto(external_data=[entry], data_location=TensorProto.EXTERNAL)
        return [*kept, stand_in.SerializeToString()]

    # --- read ---------------------------------------------------------------------------------------------------

    def is_placeholder(self, tensor: TensorProto) -> bool:
        """Whether the tensor's elements lie in this file."""
        return bool(tensor.external_data) and bool(self._indices(tensor))

    def tensor(self, tensor: TensorProto) -> TensorProto:
        """The tensor with its elements, read now from this file or from a data file; itself if nothing is missing.

        InvalidModelError if they cannot be had. Nothing is cached.
        """
        if self.is_placeholder(tensor):
            bare, stretches, location = self.split(tensor)
            try:
                bare.MergeFromString(joined([*stretches, location]))
            except DecodeError as error:
                raise InvalidModelError(f"tensor {tensor.name!r} is damaged: {error}", where=self.name) from error
            return bare
        if tensor.data_location != TensorProto.EXTERNAL:
            return tensor
        extent = self.extent(tensor)
        full = embedded(tensor)
        full.raw_data = extent.source.read(extent.start, extent.stop)
        return full

    def materialise(self, model: ModelProto) -> ModelProto:
        """A copy of a (converted) skeleton with every placeholder replaced by its tensor; external ones stay so.

        InvalidModelError if a payload cannot be parsed, or if the whole is more than protobuf's 2 GiB.
        """
        full = ModelProto()
        try:
            full.ParseFromString(joined(Layout(self, External.KEEP).of(model)))
        except DecodeError as error:
            raise InvalidModelError(f"cannot be held as one message: {error}", where=self.name) from error
        self.check_unchanged()
        return full

    def check_unchanged(self) -> None:
        """InvalidModelError if the file was written into since it was opened: then the payloads may be others."""
        if isinstance(self.source, File):
            self.source.check_unchanged()

    def check_external(self) -> None:
        """InvalidModelError unless each external tensor's data file exists, is long enough, and is one it may name.

        Looks at sizes only.
        """
        layout = Layout(self, External.KEEP)
        layout.of(self.model)
        for tensor in layout.external_tensors:
            self.extent(tensor)

    def _indices(self, tensor: TensorProto) -> list[int]:
        # A text that is not UTF-8 comes out of protobuf as bytes.
        values = [e.value for e in tensor.external_data if isinstance(e.value, str)]
        return [int(value[len(self.mark) :]) for value in values if value.startswith(self.mark)]

    def split(self, tensor: TensorProto) -> tuple[TensorProto, list[Span], bytes]:
        """A placeholder's tensor without its elements; where their fields lie; the field of its data location."""
        payloads = [self._payloads[index] for index in self._indices(tensor)]  # several: the file has a field twice
        bare = TensorProto()
        bare.CopyFrom(tensor)
        bare.ClearField("data_location")
        bare.ClearField("external_data")
        bare.external_data.extend(e for e in tensor.external_data if not str(e.value).startswith(self.mark))
        stretches = [Span(self.source, *stretch) for payload in payloads for stretch in payload.stretches]
        return bare, stretches, b"".join(payload.location for payload in payloads)

    @property
    def data_files(self) -> list[Path]:
        """The data files that were looked at so far."""
        return [file for file, _ in self._data_sizes.values()]

    # --- external data ------------------------------------------------------------------------------------------

    def extent(self, tensor: TensorProto) -> Span:
        """Where the elements of an external tensor lie; InvalidModelError if they are not all there."""
        entries = external_data(tensor)
        location = entries.get("location", "")
        what = f"tensor {tensor.name!r}, data file {location!r}"
        file, present = self.data_file(location, what)
        try:
            start = int(entries.get("offset") or 0)
            given = int(entries["length"]) if entries.get("length") else None
        except ValueError:
            raise InvalidModelError(f"{what}: offset or length is not a number", where=self.name) from None
        needed = bytes_needed(tensor)
        size = needed if needed is not None else given if given is not None else max(present - start, 0)
        if start < 0 or size < 0:
            raise InvalidModelError(f"{what}: offset or length is negative", where=self.name)
        if given is not None and given < size:
            raise InvalidModelError(f"{what}: {size} bytes needed, its length says {given}", where=self.name)
        if start + size > present:
            has = f"{max(present - start, 0)} present at offset {start}"
            raise InvalidModelError(f"{what}: {size} bytes needed, {has}", where=self.name)
        return Span(Closed(file, present), start, start + size)

    def data_file(self, location: object, what: str) -> tuple[Path, int]:
        """The data file at a location and its size. It must lie in the model's folder, links followed."""
        if not isinstance(location, str) or not location or "\0" in location:
            raise InvalidModelError(f"{what}: the location is no file name", where=self.name)
        if location in self._data_sizes:
            return self._data_sizes[location]
        if self.path is None:
            raise InvalidModelError(f"{what}: lies beside the model, which has no folder", where=self.name)
        relative = Path(location)
        if relative.is_absolute() or relative.drive or ".." in relative.parts:
            raise InvalidModelError(f"{what}: the location leads out of the model's folder", where=self.name)
        file = self.path.parent / relative
        real = Path(os.path.realpath(file))
        # Caches keep a model and its data as links to one common store: the folder of the real model is home, too.
        homes = (os.path.realpath(self.path.parent), os.path.dirname(os.path.realpath(self.path)))
        if not any(real.is_relative_to(home) for home in homes):
            raise InvalidModelError(f"{what}: a link leads out of the model's folder", where=self.name)
        try:
            status = file.stat()
        except OSError as error:
            raise InvalidModelError(f"{what}: {error.strerror}", where=self.name) from error
        if not stat.S_ISREG(status.st_mode):
            raise InvalidModelError(f"{what}: is not a regular file", where=self.name)
        self._data_sizes[location] = file, status.st_size
        return file, status.st_size


def open_model(path: str | os.PathLike[str]) -> ModelFile:
    """Opens a model file; its payloads stay on disk. InvalidModelError if it cannot be read or is no ONNX model."""
    path = Path(path)
    file = File(path)
    try:
        return ModelFile(file, path, str(path))
    except BaseException:
        file.close()
        raise


def open_bytes(data: bytes, name: str = "<stdin>") -> ModelFile:
    """The same for a serialised model at hand. External tensors cannot be resolved: there is no folder."""
    return ModelFile(Memory(data), None, name)


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
) -> Written:
    """Writes a (converted) skeleton of `source`, or any model (source None), with its payloads; all files or none.

    External data follow into another folder. SAVE puts tensors of at least `size_threshold` bytes, external ones too,
    into `external_name`, a file beside the destination ("<destination>.data" if None). A model file is replaced, a data
    file only with `overwrite`. UsageError: a destination that cannot be; InvalidModelError: payloads or external data
    that are not there; OSError: disk full, no permission.
    """
    path = Path(destination)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, not a file")
    if path.exists() and not path.is_file():  # a pipe, a device: there is nothing to replace
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
        raise UsageError(f"{path}: more than 2 GiB even with its weights in a data file")

    copies, shared = _companions(layout, source, path.parent, overwrite)
    data = [(path.parent / name, layout.data)] if layout.data else []
    taken = {os.path.realpath(file) for file in [*shared, *(there for there, _ in copies), *source.data_files]}
    for file in [path, *(there for there, _ in data)]:
        if os.path.realpath(file) in taken:
            raise UsageError(f"{file}: is a data file of the model")
    if data and source.path is not None and os.path.realpath(data[0][0]) == os.path.realpath(source.path):
        raise UsageError(f"{data[0][0]}: is the model itself")
    if data and data[0][0].exists() and not overwrite:
        raise UsageError(f"{data[0][0]}: exists already")

    files = [*copies, *data, (path, pieces)]
    done, total = 0, sum(length(parts) for _, parts in files)
    with delivery() as deliver:
        for file, parts in files:

            def tick(count: int, name: str = file.name) -> None:
                nonlocal done
                done += count
                if progress:
                    progress(done, total, name)

            deliver(file, parts, tick)
        source.release(path)
    written = tuple(file for file, _ in files[:-1])
    return Written(path, length(pieces), written, tuple(shared), switched)


def write_stream(
    model: ModelProto,
    stream: BinaryIO,
    source: ModelFile | None,
    *,
    external: External = External.KEEP,
    progress: Progress | None = None,
) -> Written:
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
    return Written(Path("-"), total, shared_data=tuple(shared))


def _companions(
    layout: Layout, source: ModelFile, folder: Path, overwrite: bool
) -> tuple[list[tuple[Path, list[Piece]]], list[Path]]:
    """The data files to copy along (target, content), and those that the written model finds where they are."""
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
        elif there.exists() and not overwrite:
            raise UsageError(f"{there}: exists already, the model's data file of that name would replace it")
        else:
            copies[there] = [Span(data, 0, data.size)]
    return list(copies.items()), list(shared)
