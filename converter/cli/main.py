# SPDX-License-Identifier: Apache-2.0
"""The command line: who answers what, and what is printed where.

Imports click and nothing else that takes time, so that `--help` answers at once; onnx comes with the first model, rich
with the first terminal. What is printed goes to stdout, or to stderr when the model itself goes to stdout; errors and
refusals go to stderr. Exit codes are those of `onnx_convert.errors`, 0 for done, 5 for `--check --exit-code` of a model
that would change, and 128 and the signal's number for an interrupt.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from onnx_convert.cli import effects, knowledge, many_models, one_model, printing
from onnx_convert.cli.command import Command
from onnx_convert.cli.options import GROUPS
from onnx_convert.cli.settings import Settings


@click.command(
    cls=Command,
    params=[
        click.Argument(["models"], metavar="MODEL...", nargs=-1, type=click.Path(readable=False)),
        *(option for group in GROUPS.values() for option in group),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "obj": lambda: None},
    options_metavar="[OPTIONS]",
    help="\b\n"  # keeps the lines as they are
    "Move an ONNX model to another opset (MODEL.opsetN.onnx), or tell what it is.\n"
    "ai.onnx.ml goes down with ai.onnx, and up only by a --to of its own.",
    epilog="Exit codes: 0 done, 1 refused, 2 usage, 3 differs, 4 unreadable, 5 would change.",
)
def main(**given: Any) -> int:
    """Reads what was asked for and hands it to whoever answers."""
    context = click.get_current_context()  # whose object is called when all that is heavy has been imported
    printing.prepare(sys.stdout, sys.stderr)
    effects.check(effects.given(context), given)
    given["as_json"] |= given["output_format"] == "json"
    as_json, debug = given["as_json"], given["debug"]
    if given["list_runtimes"] is not None:
        return knowledge.list_runtimes(given["list_runtimes"], as_json=as_json, debug=debug)
    if given["message"] is not None:
        return knowledge.read_message(given["message"], as_json=as_json, debug=debug)
    if given["explain"] is not None or given["coverage"]:
        return knowledge.tell_operators(given["explain"], as_json=as_json, debug=debug)
    asked, imported = Settings(**given), context.obj
    if asked.many_models:
        imported()
        return many_models.run(asked)
    return one_model.run(asked, imported)
