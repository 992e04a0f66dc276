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
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, StringStringEntryProto, TensorProto

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.wire import (
    VARINT,
    Piece,
    Source,
    Span,
    Trail,
    WireError,
    joined,
    read_varint,
    records,
    rewrite,
)
from onnx_convert.storage import formats
from onnx_convert.storage.files import Closed, File
from onnx_convert.storage.tensor_data import PAYLOAD_TAGS, RAW_TAG, bytes_needed, embedded, external_data

if TYPE_CHECKING:
    from typing_extensions import Self

PAYLOAD_MINIMUM = 1024
"""Bytes from which on the elements of a tensor stay in the file."""


_LOCATION_TAG = 14 << 3 | VARINT  # TensorProto.data_location


class _Payload(NamedTuple):
    """The fields of a tensor that the skeleton lacks: spans of the source, and what it said of its location."""

    spans: tuple[tuple[int, int], ...]
    location: bytes
    raw: int  # bytes of raw data, -1 if there is none or more


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
        self._data_files: dict[str, Closed] = {}
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
        """Releases the file for `write`, when all is spliced and `destination` about to be replaced; looks whether it
        is unchanged."""
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
            raise self._no_model(f"is no ONNX model, or damaged: {error}") from error
        if not model.HasField("graph"):
            raise self._no_model("is no ONNX model, or cut off: it has no graph")
        if model.ir_version >= 3 and not model.opset_import:
            raise InvalidModelError("is damaged or cut off: it imports no opset", where=self.name)
        return model

    def _no_model(self, why: str) -> InvalidModelError:
        """Returns the error for a file that is no model: what it is, if that is known, else `why`."""
        what = formats.named(self.source.window(0)[0])
        return InvalidModelError(f"{what}; that is no ONNX model" if what else why, where=self.name)

    def _lift(self, start: int, stop: int, _: Trail) -> list[Piece] | None:
        """Returns the tensor at [start, stop) as a placeholder; None if it is external or small."""
        spans: list[tuple[int, int]] = []
        kept: list[Piece] = []
        location, size, raw, rest = b"", 0, -1, start
        for tag, position, value, end in records(self.source, start, stop):
            if tag in PAYLOAD_TAGS:
                raw = end - value if tag == RAW_TAG and not spans else -1
                size += end - position
                if spans and spans[-1][1] == position:
                    spans[-1] = (spans[-1][0], end)
                else:
                    spans.append((position, end))
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
        self._payloads.append(_Payload(tuple(spans), location, raw))
        stand_in = TensorProto(external_data=[entry], data_location=TensorProto.EXTERNAL)
        return [*kept, stand_in.SerializeToString()]

    # --- read ---------------------------------------------------------------------------------------------------

    def is_placeholder(self, tensor: TensorProto) -> bool:
        """Returns whether the tensor's elements lie in this file."""
        return bool(tensor.external_data) and bool(self._indices(tensor))

    def tensor(self, tensor: TensorProto) -> TensorProto:
        """Returns the tensor with its elements, read now from this file or from a data file; itself if nothing is
        missing.

        InvalidModelError if they cannot be had. Nothing is cached.
        """
        if self.is_placeholder(tensor):
            bare, spans, location = self.split(tensor)
            try:
                bare.MergeFromString(joined([*spans, location]))
            except DecodeError as error:
                raise InvalidModelError(f"tensor {tensor.name!r} is damaged: {error}", where=self.name) from error
            return bare
        if tensor.data_location != TensorProto.EXTERNAL:
            return tensor
        extent = self.extent(tensor)
        full = embedded(tensor)
        full.raw_data = extent.source.read(extent.start, extent.stop)
        return full

    def raw_size(self, tensor: TensorProto) -> int | None:
        """Returns the bytes of raw data of a placeholder, -1 if its payload is something else; None of another
        tensor."""
        if not tensor.external_data or not (indices := self._indices(tensor)):
            return None
        payload = self._payloads[indices[0]]
        return payload.raw if len(indices) == 1 else -1

    def check_unchanged(self) -> None:
        """Raises InvalidModelError if the file was written into since it was opened: then the payloads may be
        others."""
        if isinstance(self.source, File):
            self.source.check_unchanged()

    def _indices(self, tensor: TensorProto) -> list[int]:
        # A text that is not UTF-8 comes out of protobuf as bytes.
        values = [e.value for e in tensor.external_data if isinstance(e.value, str)]
        return [int(value[len(self.mark) :]) for value in values if value.startswith(self.mark)]

    def split(self, tensor: TensorProto) -> tuple[TensorProto, list[Span], bytes]:
        """Returns a placeholder's tensor without its elements; where their fields lie; the field of its data
        location."""
        payloads = [self._payloads[index] for index in self._indices(tensor)]  # several: the file has a field twice
        bare = TensorProto()
        bare.CopyFrom(tensor)
        bare.ClearField("data_location")
        bare.ClearField("external_data")
        bare.external_data.extend(e for e in tensor.external_data if not str(e.value).startswith(self.mark))
        spans = [Span(self.source, *place) for payload in payloads for place in payload.spans]
        return bare, spans, b"".join(payload.location for payload in payloads)

    @property
    def data_files(self) -> list[Path]:
        """The data files that were looked at so far."""
        return [file.path for file in self._data_files.values()]

    # --- external data ------------------------------------------------------------------------------------------

    def extent(self, tensor: TensorProto) -> Span:
        """Returns where the elements of an external tensor lie; InvalidModelError if they are not all there."""
        entries = external_data(tensor)
        location = entries.get("location", "")
        what = f"tensor {tensor.name!r}, data file {location!r}"
        file = self.data_file(location, what)
        present = file.size
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
        return Span(file, start, start + size)

    def data_file(self, location: object, what: str) -> Closed:
        """Returns the data file at a location. It must lie in the model's folder, links followed; what is opened is
        what is checked, and what is read later has to be the same file."""
        if not isinstance(location, str) or not location or "\0" in location:
            raise InvalidModelError(f"{what}: the location is not a file name", where=self.name)
        if location in self._data_files:
            return self._data_files[location]
        if self.path is None:
            raise InvalidModelError(f"{what}: lies beside the model, which has no folder", where=self.name)
        relative = Path(location)
        if relative.is_absolute() or relative.drive or ".." in relative.parts:
            raise InvalidModelError(f"{what}: the location leads out of the model's folder", where=self.name)
        file = self.path.parent / relative
        try:
            if not stat.S_ISREG(file.stat().st_mode):
                raise InvalidModelError("is not a regular file")
            opened = File(file)
        except OSError as error:
            raise InvalidModelError(f"{what}: {error.strerror}", where=self.name) from error
        except InvalidModelError as error:
            raise InvalidModelError(f"{what}: {error.why}", where=self.name) from error
        try:
            # Caches keep a model and its data as links to one common store: the folder of the real model is home, too.
            homes = (os.path.realpath(self.path.parent), os.path.dirname(os.path.realpath(self.path)))
            if not any(opened.real_path().is_relative_to(home) for home in homes):
                raise InvalidModelError(f"{what}: a link leads out of the model's folder", where=self.name)
            found = self._data_files[location] = Closed(file, opened.size, opened.identity)
        finally:
            opened.close()
        return found
