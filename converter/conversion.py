# SPDX-License-Identifier: Apache-2.0
"""The outcome of a conversion: the model that it made, where to save it, and the report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from onnx_convert.errors import UsageError
from onnx_convert.storage import writer
from onnx_convert.storage.layout import External
from onnx_convert.storage.skeleton import PAYLOAD_MINIMUM

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

    from onnx import ModelProto
    from typing_extensions import Self

    from onnx_convert.report import Report
    from onnx_convert.storage.skeleton import ModelFile
    from onnx_convert.storage.source import OpenSource
    from onnx_convert.storage.writer import Progress


class Conversion:
    """A converted model and the report of what was done. Holds the source file open until it is closed or dropped."""

    def __init__(self, source: OpenSource, report: Report) -> None:
        self.report = report
        self.report.source_bytes = source.file.size if source.file is not None else 0
        self._source = source
        self._model: Any = None
        self._closed = False
        self._written: frozenset[int] = frozenset()

    @property
    def model(self) -> Any:
        """The converted model, of the kind that was given: a ModelProto for a ModelProto, an onnx_ir.Model for one.

        For a path it is a ModelProto with the embedded weights read in; external data stay external. Where it is not
        the very message that is converted, as it is for a ModelProto, changes of it do not reach `save`.
        """
        if self._model is None:
            file, proto = self._open_file(), self._source.proto
            self._model = self._source.wrap(writer.materialise(file, proto) if file else proto)
        return self._model

    @property
    def skeleton(self) -> ModelProto:
        """The converted model as it is held: large tensors may point into the source file."""
        proto: ModelProto = self._source.proto
        return proto

    @property
    def changed(self) -> bool:
        """Whether anything about the model is different."""
        return self.report.changed

    @property
    def source_files(self) -> list[str]:
        """The files that the model was read from: its own first, then its data files; none for a model in memory."""
        file = self._source.file
        if file is None or file.path is None:
            return []
        return [str(path) for path in (file.path, *file.data_files)]

    @property
    def source_is_there(self) -> bool:
        """Whether the files that the model was read from are still there as they were read."""
        file = self._source.file
        return file is None or file.is_at_its_place()

    @property
    def written(self) -> frozenset[int]:
        """The inodes of the files that were saved last, which tell whether they are what lies in a place."""
        return self._written

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        external: str = "keep",
        external_name: str | None = None,
        size_threshold: int = PAYLOAD_MINIMUM,
        overwrite_data: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Writes the model, whole or not at all, and completes the report.

        `external` says what becomes of weights: "keep" them embedded or external as they are, "save" those of at least
        `size_threshold` bytes to one data file (`external_name`, beside the model), or "embed" external ones. External
        data follow into another folder; an existing data file is replaced only with `overwrite_data`. `progress` is
        called with bytes done, all bytes, and the file's name. Raises UsageError, InvalidModelError (data files that
        are not there, or that have to be read for a model in memory, which does not tell where they are) and OSError.
        """
        kind = _kind(external)
        if size_threshold < 0:
            raise UsageError(f"a size threshold is a number of bytes, not {size_threshold}")
        started = time.perf_counter()
        written = writer.write(
            self._source.proto,
            path,
            self._open_file(),
            external=kind,
            external_name=external_name,
            size_threshold=size_threshold,
            overwrite=overwrite_data,
            progress=progress,
        )
        self.report.seconds += time.perf_counter() - started
        self._written = written.inodes
        self.report.destination = str(path)
        self.report.destination_bytes = written.bytes
        self.report.replaced = written.replaced
        self.report.data_files = [str(file) for file in written.data_files]
        self.report.shared_data = [str(file) for file in written.shared_data]
        for file in written.shared_data:
            if not file.exists():  # a model in memory does not tell where its data are
                _say(self.report.warnings, f"its external data are not there: {file}")
        if written.switched_to_external:
            _say(self.report.notes, "embedded it would exceed 2 GiB: its weights went to a data file")
        return self.report

    def write(self, stream: BinaryIO, *, external: str = "keep") -> None:
        """Writes the model to a binary stream; external data stay where they are, or are embedded."""
        written = writer.write_stream(self._source.proto, stream, self._open_file(), external=_kind(external))
        self.report.destination = "-"
        self.report.destination_bytes = written.bytes
        self.report.shared_data = [str(file) for file in written.shared_data]
        if written.shared_data:
            names = ", ".join(file.name for file in written.shared_data)
            _say(self.report.warnings, f"it finds its external data only in the folder in which they are: {names}")

    def close(self) -> None:
        """Lets go of the source, if that is a file or bytes: the model cannot be read or saved any more."""
        self._closed = True
        self._source.close()

    def _open_file(self) -> ModelFile | None:
        if self._closed and self._source.file is not None:
            raise UsageError("the conversion is closed: read or save the model before")
        return self._source.file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _say(remarks: list[str], remark: str) -> None:
    """Adds a remark, unless an earlier writing of the same model led to it."""
    if remark not in remarks:
        remarks.append(remark)


def _kind(external: str) -> External:
    if external not in {kind.value for kind in External}:
        raise UsageError(f"external is 'keep', 'save' or 'embed', not {external!r}")
    return External(external)
