# SPDX-License-Identifier: Apache-2.0
"""Skeleton in, splice out: the only room (with `files` under it) that opens files.

The weights of a model are neither read nor held. `open_model` walks the file's headers and leaves each *payload* (the
elements of a tensor, 1 KiB or more of them) where it lies; the `ModelProto` that it gives is a skeleton, in which such
a tensor is a *placeholder*: an external tensor whose location no file can have. `write` serialises the skeleton, finds
the placeholders in the bytes and splices the payloads back, from file to file. `ModelFile.tensor` reads one payload
when somebody needs it. Tensors whose data are external in the file itself stay as they are.

Long texts that mean nothing to a conversion stay in the file as well: in the skeleton a mark stands for each.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, NodeProto, StringStringEntryProto, TensorProto

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.forms import ATTRIBUTE, BLOB_TAGS, NODE, TENSOR, Trail, rewrite, rewrite_field
from onnx_convert.model.wire import (
    BYTES,
    VARINT,
    Piece,
    Source,
    Span,
    WireError,
    joined,
    length,
    prefix,
    read_varint,
    records,
)
from onnx_convert.spec import opsets
from onnx_convert.storage import formats
from onnx_convert.storage.files import Closed, File
from onnx_convert.storage.tensor_data import PAYLOAD_TAGS, RAW_TAG, bytes_needed, embedded, external_data

if TYPE_CHECKING:
    from typing_extensions import Self

PAYLOAD_MINIMUM = 1024
"""Bytes from which on the elements of a tensor stay in the file."""


_LEAST_SPAN = 64  # bytes, on average: a payload that lies in scattered bits costs less in memory


TEXT_MINIMUM = 1 << 14
"""Bytes from which on a text that means nothing to a conversion stays in the file."""


_LOCATION_TAG = 14 << 3 | VARINT  # TensorProto.data_location
_DOMAIN_TAG = NodeProto.DESCRIPTOR.fields_by_name["domain"].number << 3 | BYTES


class _Payload(NamedTuple):
    """The fields of a tensor that the skeleton lacks: spans of the source, and what it said of its location."""

    spans: tuple[tuple[int, int], ...]
    location: bytes
    raw: int  # bytes of raw data; below 0: bytes of other fields


class _Lifting:
    """The walk through a file that is opened, on which payloads and long texts are left behind."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._node = (-1, False)  # where the last node begins that was asked for, and whether its texts stay behind

    def enter(self, start: int, stop: int) -> bool:
        return stop - start >= PAYLOAD_MINIMUM

    def tensor(self, source: Source, start: int, stop: int, trail: Trail) -> list[Piece] | None:  # noqa: ARG002
        return self._file.lift(start, stop, self, trail)

    def text(self, source: Source, start: int, stop: int, tag: int, trail: Trail) -> list[Piece] | None:
        if stop - start < TEXT_MINIMUM or (
            tag in BLOB_TAGS and trail[-1][0] is ATTRIBUTE and self._is_read(source, trail)
        ):
            return None
        return self._file.lift_text(start, stop)

    def _is_read(self, source: Source, trail: Trail) -> bool:
        """Tells whether somebody may read the texts of an attribute: those of ONNX's own operators."""
        form, start, stop = trail[-2]
        if form is not NODE:
            return True
        if self._node[0] != start:
            domains = [
                source.read(value, end) for tag, _, value, end in records(source, start, stop) if tag == _DOMAIN_TAG
            ]
            domain = domains[-1].decode("utf-8", "replace") if domains else ""
            self._node = start, opsets.is_known(opsets.canonical_domain(domain))
        return self._node[1]


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
        self.text_mark = f"\0{os.urandom(16).hex()};".encode()
        self._payloads: list[_Payload] = []
        self._texts: list[Span] = []
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
            pieces = rewrite(self.source, 0, self.size, _Lifting(self))
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

    def lift(self, start: int, stop: int, lifting: _Lifting, trail: Trail) -> list[Piece] | None:
        """Returns the tensor at [start, stop) as a placeholder, without its long texts; None if it stays as it is, as
        one does that is external or small, and has none."""
        trail = (*trail, (TENSOR, start, stop))
        spans: list[tuple[int, int]] = []
        location, size, raw = b"", 0, 0
        for tag, position, value, end in records(self.source, start, stop):
            if tag in PAYLOAD_TAGS:
                raw = end - value if tag == RAW_TAG and not spans else 0
                size += end - position
                if spans and spans[-1][1] == position:
                    spans[-1] = (spans[-1][0], end)
                else:
                    spans.append((position, end))
            elif tag == _LOCATION_TAG:
                if read_varint(self.source.read(value, end), 0)[0] == TensorProto.EXTERNAL:
                    size = -1 << 63
                location += self.source.read(position, end)
        lifted = size >= PAYLOAD_MINIMUM and size >= _LEAST_SPAN * len(spans)
        pieces: list[Piece] = []
        kept = start
        for tag, position, value, end in records(self.source, start, stop):
            changed = rewrite_field(self.source, tag, value, end, lifting, trail)
            if changed is None and not (lifted and (tag in PAYLOAD_TAGS or tag == _LOCATION_TAG)):
                continue
            if kept < position:
                pieces.append(Span(self.source, kept, position))
            if changed is not None:
                pieces += [prefix(tag, length(changed)), *changed]
            kept = end
        if kept == start and not pieces:
            return None
        if kept < stop:
            pieces.append(Span(self.source, kept, stop))
        if lifted:
            entry = StringStringEntryProto(key="location", value=f"{self.mark}{len(self._payloads)}")
            self._payloads.append(_Payload(tuple(spans), location, raw or -size))
            pieces.append(TensorProto(external_data=[entry], data_location=TensorProto.EXTERNAL).SerializeToString())
        return pieces

    def lift_text(self, start: int, stop: int) -> list[Piece]:
        """Returns the mark that stands for a text that is left in the file."""
        self._texts.append(Span(self.source, start, stop))
        return [self.text_mark + b"%d;" % (len(self._texts) - 1)]

    def texts(self, value: Any) -> Any:
        """Returns a text, or a list with texts, with those that were left in the file; any other value as it is."""
        if isinstance(value, list) and value and isinstance(value[0], str | bytes):
            return [self.texts(one) for one in value]
        data = value.encode() if isinstance(value, str) else value
        if not isinstance(data, bytes) or self.text_mark not in data:
            return value
        whole = joined(self.restored(data))
        try:
            return whole.decode() if isinstance(value, str) else whole
        except UnicodeDecodeError:
            return whole

    def restored(self, text: bytes) -> list[Piece]:
        """Returns a text with each mark in it replaced by what it stands for, wherever in the text that is."""
        pieces: list[Piece] = []
        first, *others = text.split(self.text_mark)
        pieces.append(first)
        for part in others:
            index, _, rest = part.partition(b";")
            pieces += [self._texts[int(index)], rest]
        return [piece for piece in pieces if len(piece)]

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
        """Returns the bytes of raw data of a placeholder; below 0, the bytes of its payload if that is something else,
        -1 if there are several; None of another tensor."""
        if not tensor.external_data or not (indices := self._indices(tensor)):
            return None
        payload = self._payloads[indices[0]]
        return payload.raw if len(indices) == 1 else -1

    def check_unchanged(self) -> None:
        """Raises InvalidModelError if the file was written into since it was opened: then the payloads may be
        others."""
        if isinstance(self.source, File):
            self.source.check_unchanged()

    def is_at_its_place(self) -> bool:
        """Returns whether what was read is what lies there: nobody has replaced a file since, or written into one."""
        files = [self.source, *self._data_files.values()]
        return all(file.is_at_its_place() for file in files if isinstance(file, File | Closed))

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
            raise InvalidModelError(
                f"{what}: lies beside the model, which has no folder here: give the path of the model", where=self.name
            )
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
