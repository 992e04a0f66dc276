# SPDX-License-Identifier: Apache-2.0
"""The options of the command line, each declared once, in the group and order in which `--help` shows them."""

from __future__ import annotations

import re
from typing import Final

import click
from click import Option

from onnx_convert.cli import completion


def opset(text: str) -> tuple[str, int | str]:
    """Reads `14`, `latest`, `ai.onnx.ml:3` or `ai.onnx.ml:latest`, as (domain, opset)."""
    domain, _, version = text.rpartition(":")
    if version != "latest" and not (version.isdecimal() and int(version) > 0):
        way = "give a number from 1 on, latest, or DOMAIN:NUMBER."
        if re.fullmatch(r"[A-Za-z][\w.-]*(@|==)\w[\w.+-]*", text):
            way = f"a runtime is given by --for {text}."
        elif number := re.fullmatch(r"(?:opset|v)[-_ ]?(\d+)|(\d+)[.]0", text, re.IGNORECASE):
            way = f"write --to {number[1] or number[2]}."
        elif text.endswith(".onnx"):
            way = f"it stands before the model: --to N {text}."
        elif text.lower() in ("highest", "last", "latest", "max", "newest"):
            way = "write --to latest."
        elif text in ("ai.onnx", "ai.onnx.ml"):
            way = f"its opset follows a colon: --to {text}:N."
        elif turned := re.fullmatch(r"(\d+):([A-Za-z][\w.]*)", text):
            way = f"write --to {turned[2]}:{turned[1]}."
        elif re.fullmatch(r"\d+([,;]\d+)+", text):
            way = "a model has one: run once for each."
        elif re.fullmatch(r"\d+[.]\d+([.]\d+)*", text):
            way = f"a version is that of a runtime: --for NAME@{text}."
        raise click.BadParameter(f"{text!r} is not an opset; {way}")
    return domain or "ai.onnx", version if version == "latest" else int(version)


def stamp(text: str) -> tuple[str, int]:
    """Reads `11` or `ai.onnx.ml:2`, as (domain, opset)."""
    domain, _, version = text.rpartition(":")
    if not (version.isdecimal() and int(version) > 0):
        raise click.BadParameter(f"{text!r} is not an opset that a model has; give a number, or DOMAIN:NUMBER.")
    return domain or "ai.onnx", int(version)


def input_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Reads `x:1,3,224,224`, as (name, shape); `x:` is a scalar."""
    name, colon, sizes = text.rpartition(":")
    numbers = [size.strip() for size in sizes.split(",")] if sizes.strip() else []
    if not colon or not name or not all(number.isdecimal() for number in numbers):
        raise click.BadParameter(f"{text!r} is no shape of an input; x:1,3,224,224 is one.")
    return name, tuple(map(int, numbers))


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Prints the version and ends, if it is `wanted`."""
    if wanted:
        import onnx_convert

        click.echo(f"onnx-convert {onnx_convert.__version__}")
        context.exit()


_PATH: Final = click.Path(readable=False)  # what is read and written is found out by whoever does it

GROUPS: Final[dict[str, tuple[Option, ...]]] = {
    "Target": (
        Option(["--to"], multiple=True, type=opset, metavar="OPSET", help="14, latest; once per domain: ai.onnx.ml:3"),
        Option(
            ["--for", "runtimes"],
            multiple=True,
            metavar="RUNTIME",
            shell_complete=completion.runtimes,
            help="what has to load it: onnxruntime@1.14",
        ),
        Option(
            ["--from", "given_stamps"],
            multiple=True,
            type=stamp,
            metavar="OPSET",
            help="what MODEL is, if its stamp is wrong",
        ),
        Option(["--ir-version"], type=int, metavar="N", help="instead of the one of the opset"),
        Option(["--check"], is_flag=True, help="plan only, write nothing"),
        Option(["--exit-code"], is_flag=True, help="with --check: 5 if it would change"),
    ),
    "Many models": (
        Option(["--files-from"], type=_PATH, metavar="FILE", help="names, a line each or of find -print0; - for stdin"),
        Option(["-j", "--workers"], type=int, metavar="N", help="processes [as many as cores]"),
        Option(["--timeout"], type=float, metavar="S", help="seconds for a model"),
        Option(["--redo"], is_flag=True, help="also what is up to date"),
        Option(["--dask"], metavar="ADDRESS", help="on a cluster: tcp://scheduler:8786"),
    ),
    "Output": (
        Option(["-o", "--output"], type=_PATH, metavar="PATH", help="file or folder, - for stdout"),
        Option(["--in-place"], is_flag=True, help="replace MODEL itself"),
        Option(["-f", "--force"], is_flag=True, help="replace a file that is no ONNX model too"),
        Option(["--no-clobber"], is_flag=True, help="replace no file"),
        Option(
            ["--report"],
            type=_PATH,
            metavar="FILE",
            help="what was done, drawn: .html, .json, .md; many: .jsonl",
        ),
    ),
    "Promises": (
        Option(
            ["--types"],
            type=click.Choice(["refuse", "cast", "cast-rounding"]),
            default="refuse",
            metavar="HOW",
            help="new dtypes: refuse, cast, cast-rounding",
        ),
        Option(["--exact"], is_flag=True, help="only rewrites that give the same bits"),
        Option(
            ["--allow"],
            multiple=True,
            type=click.Choice(["conditional"]),
            metavar="FORM",
            help="conditional: right under a condition",
        ),
        Option(["--strict"], is_flag=True, help="refuse what is unknown, assume nothing"),
        Option(["--expand"], type=click.Choice(["all"]), metavar="WHAT", help="all: very large replacements as well"),
        Option(["--keep-functions"], is_flag=True, help="refuse instead of inlining functions"),
        Option(["--keep-initializer-inputs"], is_flag=True, help="from IR version 3: they stay inputs"),
    ),
    "Verification": (
        Option(["--verify"], is_flag=True, help="run source and result, compare the numbers"),
        Option(["--verify-against"], type=_PATH, metavar="RESULT", help="compare MODEL with a file, convert nothing"),
        Option(["--inputs"], type=_PATH, metavar="PATH", help="an .npz, or a folder of input_0.pb or .npy"),
        Option(
            ["--input-shape", "input_shapes"],
            multiple=True,
            type=input_shape,
            metavar="NAME:SHAPE",
            help="of inputs that are made: x:1,3,224,224",
        ),
    ),
    "External data": (
        Option(
            ["--save-external-data", "external_name"],
            is_flag=False,
            flag_value="",
            metavar="[NAME]",
            help="weights to a file beside the output",
        ),
        Option(["--embed"], is_flag=True, help="weights into the output"),
        Option(["--overwrite-data"], is_flag=True, help="replace data files that exist already"),
        Option(
            ["--external-data-size-threshold", "size_threshold"],
            type=int,
            default=1024,
            metavar="N",
            help="weights below N bytes stay inside [1024]",
        ),
    ),
    "Knowledge (no MODEL)": (
        Option(
            ["--list-runtimes"], is_flag=False, flag_value="", metavar="[NAME]", help="what --for knows, and how well"
        ),
        Option(["--explain"], metavar="OPERATOR", help="what becomes of it: Softmax, Softmax@13"),
        Option(
            ["--message"],
            is_flag=False,
            flag_value="",
            metavar="[TEXT]",
            help="what to type after an error, - for stdin",
        ),
        Option(["--coverage"], is_flag=True, help="what is decided, for every operator"),
    ),
    "Other": (
        Option(
            ["--output-format"],
            type=click.Choice(["text", "json", "github"]),
            default="text",
            metavar="HOW",
            help="text, json, or github's annotations",
        ),
        Option(["--json", "as_json"], is_flag=True, help="report as JSON on stdout"),
        Option(["-q", "--quiet"], is_flag=True, help="errors only"),
        Option(
            ["--diff"], is_flag=False, flag_value="", metavar="[MODEL]", help="nodes before and after; or of two MODELs"
        ),
        Option(["-v", "--verbose"], is_flag=True, help="each rewrite, drawn, and node name"),
        Option(["--debug"], is_flag=True, help="tracebacks"),
        Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_version, help="print the version"
        ),
    ),
}
"""The options in the order in which they are shown; `command` adds `--help` to the last group."""
