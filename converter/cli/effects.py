# SPDX-License-Identifier: Apache-2.0
"""Refuses options that have no effect on what was asked for, so that nobody waits in vain for what one would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from collections.abc import Mapping

KNOWLEDGE: Final = ("list_runtimes", "explain", "coverage", "message")
"""The options that answer without a model."""
_TARGETS: Final = frozenset(("to", "runtimes", "ir_version"))
_ASKED_OF_KNOWLEDGE: Final = frozenset(("as_json", "debug"))
_ASKED_OF_A_DESCRIPTION: Final = frozenset(
    "given_stamps types exact allow strict expand keep_functions as_json quiet verbose debug".split()
)
"""The options that change a description: those about rewrites decide how far the model can go."""
_ASKED_OF_A_COMPARISON: Final = frozenset("given_stamps inputs input_shapes as_json quiet verbose debug".split())
_ASKED_OF_A_DIFFERENCE: Final = frozenset("as_json quiet debug".split())


def given(context: click.Context) -> dict[str, str]:
    """Returns the parameters that the command line names: the longest spelling of each, by its name."""
    return {
        str(parameter.name): max(parameter.opts, key=len)
        for parameter in context.command.params
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    }


def check(named: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Raises click.UsageError for an option without effect, with what to type instead."""
    if "output_format" in named and values["output_format"] == "json":
        named = {"as_json" if name == "output_format" else name: option for name, option in named.items()}
    elif "output_format" in named and "as_json" in named:
        raise click.UsageError(f"--json and --output-format {values['output_format']} exclude each other.")
    asked = [name for name in KNOWLEDGE if name in named]
    if len(asked) > 1:
        raise click.UsageError(f"{named[asked[0]]} and {named[asked[1]]} exclude each other.")
    if asked:
        _check_knowledge(asked[0], named, values)
    elif "verify_against" in named:
        for name, option in named.items():
            if name not in ("models", "verify_against", *_ASKED_OF_A_COMPARISON):
                raise click.UsageError(f"--verify-against converts nothing: {option} has no effect, leave it out.")
    elif not named.keys() & _TARGETS and values["diff"]:
        for name, option in named.items():
            if name not in ("models", "diff", *_ASKED_OF_A_DIFFERENCE):
                raise click.UsageError(
                    f"--diff with a second model converts nothing: {option} has no effect, leave it out."
                )
    elif not named.keys() & _TARGETS:
        if "diff" in named and values["models"]:
            first, *others = values["models"]
            command = f"onnx-convert {first} --diff {others[0] if others else 'MODEL'}"
            raise click.UsageError(f"Missing option '--to' or '--for', or a second model: {command}.")
        for name, option in named.items():
            if name not in ("models", *_ASKED_OF_A_DESCRIPTION):
                raise click.UsageError(f"Missing option '--to' or '--for': without, {option} has no effect.")


def _check_knowledge(asked: str, named: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Raises click.UsageError for what is given beside an option that answers without a model."""
    option, model = named[asked], next(iter(values["models"]), None)
    if asked == "list_runtimes" and model is None and _is_a_model(values[asked]):
        model = values[asked]
    if model is not None and asked == "coverage" and not _is_a_model(model):
        raise click.UsageError(f"{option} is about every operator; about one: --explain {model}.")
    if model is not None and asked == "explain" and model.isdecimal():
        raise click.UsageError(f"Unexpected {model}. A boundary follows an @: --explain {values[asked]}@{model}.")
    if model is not None and asked == "list_runtimes":
        raise click.UsageError(f"{option} is about no model; what loads one: onnx-convert {model}.")
    if model is not None:
        raise click.UsageError(f"{option} is about no model: leave {model} out.")
    for name, other in named.items():
        if name not in (asked, *_ASKED_OF_KNOWLEDGE):
            raise click.UsageError(f"{other} has no effect with {option}: leave it out.")


def _is_a_model(text: str) -> bool:
    """Returns whether a word on the command line is rather a file than a name."""
    return text.endswith(".onnx") or Path(text).is_file()
