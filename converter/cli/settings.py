# SPDX-License-Identifier: Apache-2.0
"""The options that a user gave, what follows from them, and which contradict each other."""

from __future__ import annotations

import codecs
import glob
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from onnx_convert.cli import places, streams
from onnx_convert.cli.places import STREAM
from onnx_convert.errors import InvalidModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Version = TypeVar("Version")

_PROMISES: Final = ("types", "exact", "allow", "strict", "expand", "keep_functions")

_MANY: Final = ("output", "in_place", "check", "workers", "timeout", "redo", "force", "verify")


class Stdin(bytes):
    """What stdin gave, by the name that it has in all messages."""

    name = "stdin"


class Settings(SimpleNamespace):
    """The options by the names under which `options` declares them.

    Raises click.UsageError for what is missing and for options that contradict each other.
    """

    models: Any
    output: Any
    diff: Any
    difference = ""  # of source and result, once it is known and if it was asked for
    external_name: Any

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        if not self.models and self.external_name:  # `--save-external-data MODEL`: the one thing given is the model
            self.models, self.external_name = (self.external_name,), ""
        if not self.models and self.diff:  # likewise `--diff MODEL`
            self.models, self.diff = (self.diff,), ""
        if not self.models and self.files_from is None:
            raise click.UsageError(
                "Missing argument 'MODEL': onnx-convert MODEL tells what one is, MODEL --to N moves it; - is stdin."
            )
        self.model = self.models[0] if self.models else ""
        self._check()
        if self.many_models:
            self._check_many()
            return
        if self.output in streams.STDOUT_NAMES or (self.output is None and self.model == STREAM):
            self.output = STREAM
        if self.piped and self.verify:
            raise click.UsageError("--verify needs the result in a file: use -o.")
        if self.piped and (self.as_json or self.external == "save"):
            raise click.UsageError("--json and --save-external-data need the model in a file: use -o.")
        if self.piped and sys.stdout.isatty():
            raise click.UsageError("The model would go to the terminal: use -o.")

    @property
    def many_models(self) -> bool:
        """Whether several models may be meant: by several names, a list of names, a folder, or a pattern."""
        first = self.model
        pattern = glob.has_magic(first) and not os.path.lexists(first)
        return len(self.models) > 1 or self.files_from is not None or pattern or Path(first).is_dir()

    @property
    def described(self) -> bool:
        """Whether the model is to be described, and not converted."""
        return not self.to and not self.runtimes and self.ir_version is None and self.verify_against is None

    @property
    def piped(self) -> bool:
        """Whether the result goes to stdout."""
        converts = not self.check and not self.described and self.verify_against is None
        return bool(self.output == STREAM and converts)

    @property
    def name(self) -> str:
        """The model's name for people."""
        return Stdin.name if self.model == STREAM else str(self.model)

    @property
    def external(self) -> str:
        """What becomes of weights: "embed", "save" or "keep"."""
        return "embed" if self.embed else "keep" if self.external_name is None else "save"

    def source(self) -> str | bytes:
        """Returns the model as the API takes it: its path, or what stdin gives.

        InvalidModelError for a pipe: what is read from it cannot be read twice.
        """
        if self.model == STREAM:
            return Stdin(sys.stdin.buffer.read())
        if places.is_pipe(self.model):
            raise InvalidModelError("is no file; a model is read from a pipe by onnx-convert -", where=self.name)
        return str(self.model)

    def target(self) -> dict[str, int | str] | None:
        """Returns the opsets by domain, as the API takes them; None if no opset was named."""
        return _once("--to", self.to) or None

    def stamps(self) -> dict[str, int] | None:
        """Returns the opsets that the model is read at, as the API takes them; None if its stamp counts."""
        return _once("--from", self.given_stamps) or None

    def promises(self) -> dict[str, Any]:
        """Returns what the model is, and what may be rewritten, as the API takes it."""
        given = {name: getattr(self, name) or "" if name == "expand" else getattr(self, name) for name in _PROMISES}
        return {**given, "source_opset": self.stamps()}

    @property
    def compared(self) -> bool:
        """Whether MODEL is to be compared with another one, and not converted."""
        return bool(self.diff)

    @property
    def command(self) -> list[str]:
        """The command that asks for the same, as far as it says where to and what is allowed."""
        return self.command_for(str(self.model))

    def command_for(self, model: str) -> list[str]:
        """Returns the command that asks the same of a model alone."""
        line = ["onnx-convert", model]
        line += [part for domain, version in self.to
                 for part in ("--to", str(version) if domain == "ai.onnx" else f"{domain}:{version}")]  # fmt: skip
        line += [part for runtime in self.runtimes for part in ("--for", runtime)]
        line += ["--ir-version", str(self.ir_version)] if self.ir_version is not None else []
        line += ["--types", self.types] if self.types != "refuse" else []
        line += [part for form in self.allow for part in ("--allow", form)]
        line += ["--expand", self.expand] if self.expand else []
        flags = ("exact", "strict", "keep_functions", "keep_initializer_inputs")
        return [*line, *(f"--{flag.replace('_', '-')}" for flag in flags if getattr(self, flag))]

    def options(self) -> dict[str, Any]:
        """Returns all keywords of a conversion, as the API takes them."""
        return {
            **({"examples": True} if self.verbose or (self.report and not self.report.endswith(".jsonl")) else {}),
            **self.promises(),
            "runtime": self.runtimes[0] if self.runtimes else None,
            "ir_version": self.ir_version,
            "keep_initializer_inputs": self.keep_initializer_inputs,
        }

    def saving(self) -> dict[str, Any]:
        """Returns the keywords of `Conversion.save`."""
        return {
            "external": self.external,
            "external_name": self.external_name or None,
            "size_threshold": self.size_threshold,
            "overwrite_data": self.overwrite_data,
        }

    def named(self) -> list[str]:
        """Returns the files, folders and patterns that were named, those of `--files-from` included."""
        if self.files_from is None:
            return [*self.models]
        with click.open_file(self.files_from, "rb") as file:
            names = file.read().removeprefix(codecs.BOM_UTF8)
        several = names.split(b"\0") if b"\0" in names else [line.removesuffix(b"\r") for line in names.split(b"\n")]
        return [*self.models, *(os.fsdecode(name) for name in several if name.strip())]

    def many(self) -> dict[str, Any]:
        """Returns the keywords of `convert_many`."""
        saving = self.saving()
        del saving["external_name"]
        own = {name: getattr(self, name) for name in _MANY}
        return {**self.options(), **saving, **own}

    def _check_many(self) -> None:
        """Raises for what many models need, and what makes no sense for them."""
        if self.verify_against is not None:
            raise click.UsageError("--verify-against is for one model: a loop of the shell compares several.")
        if self.described:
            raise click.UsageError("Missing option '--to' or '--for': one model alone can be described.")
        if (self.output is not None) + self.in_place + self.check != 1:
            raise click.UsageError("Several models need one of: -o FOLDER, --in-place, --check.")
        if self.output in (STREAM, *streams.STDOUT_NAMES) or STREAM in self.models:
            raise click.UsageError("A stream holds one model: several need files.")
        if self.external_name:
            raise click.UsageError("--save-external-data=NAME is for one model: without a name, each has its own file.")
        if self.no_clobber:
            raise click.UsageError("--no-clobber is for one model: several that are up to date are left as they are.")
        if self.diff is not None:
            raise click.UsageError("--diff is for one model.")
        if self.inputs is not None or self.input_shapes:
            option = "--inputs" if self.inputs is not None else "--input-shape"
            raise click.UsageError(f"{option} is for one model: for several, inputs are made.")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of inputs that are to be made. UsageError if one is named twice."""
        shapes = dict(self.input_shapes)
        if len(shapes) < len(self.input_shapes):
            raise UsageError("--input-shape names an input twice")
        return shapes

    def _check(self) -> None:
        """Raises for options that contradict each other."""
        if self.inputs is not None and self.input_shapes:
            raise click.UsageError("--inputs and --input-shape exclude each other: what is given has a shape.")
        if self.verify_against is None and not self.verify and (self.inputs is not None or self.input_shapes):
            option = "--inputs" if self.inputs is not None else "--input-shape"
            raise click.UsageError(f"{option} has no effect without --verify.")
        if self.verify and self.check:
            raise click.UsageError("--verify needs a result, and --check makes none.")
        if self.exact and (self.allow or self.types == "cast-rounding"):
            raise click.UsageError(
                f"--exact excludes {'--allow conditional' if self.allow else '--types cast-rounding'}."
            )
        if self.embed and self.external_name is not None:
            raise click.UsageError("--embed and --save-external-data exclude each other.")
        if len(self.runtimes) > 1:
            count, names = len(self.runtimes), ", ".join(self.runtimes)
            raise click.UsageError(f"--for takes one runtime, not {count} ({names}): run once for each.")
        if self.to and self.runtimes:
            raise click.UsageError("--to and --for exclude each other.")
        if self.compared and not self.described:
            raise click.UsageError("--diff with a second model takes no --to and no --for.")
        if self.exit_code and not self.check:
            raise click.UsageError("--exit-code needs --check.")
        if self.no_clobber and (self.force or self.in_place):
            raise click.UsageError(f"--no-clobber excludes {'--force' if self.force else '--in-place'}.")
        for name in ("workers", "timeout", "redo", "dask"):
            if getattr(self, name) and not self.many_models:
                raise click.UsageError(f"--{name} is for several models.")
        if self.in_place and (self.output is not None or self.model == STREAM):
            raise click.UsageError("--in-place needs MODEL to be a file, and excludes -o.")
        if self.in_place and self.force:
            raise click.UsageError("--force has no effect with --in-place: MODEL is replaced anyway.")
        if self.output in (STREAM, *streams.STDOUT_NAMES) and (self.force or self.overwrite_data):
            option = "--force" if self.force else "--overwrite-data"
            raise click.UsageError(f"{option} has no effect with -o {self.output}: no file is replaced.")
        if self.quiet and self.verbose:
            raise click.UsageError("--quiet and --verbose exclude each other.")


def _once(option: str, given: Sequence[tuple[str, Version]]) -> dict[str, Version]:
    """Returns versions by domain. UsageError if an option names a domain twice."""
    versions = dict(given)
    if len(versions) < len(given):
        twice = next(domain for domain in versions if [named for named, _ in given].count(domain) > 1)
        told = " and ".join(str(version) for domain, version in given if domain == twice)
        raise UsageError(f"{option} names a domain twice: {twice} at {told}")
    return versions
