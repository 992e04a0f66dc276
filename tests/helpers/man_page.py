# SPDX-License-Identifier: Apache-2.0
"""Writes the manual page of the command anew, from what `--help` says: `python tests/helpers/man_page.py`."""

from __future__ import annotations

from pathlib import Path

import click

from onnx_convert.cli.main import main
from onnx_convert.cli.options import GROUPS

PLACE = Path(__file__).parents[2] / "converter" / "cli" / "onnx-convert.1"


def escaped(text: str) -> str:
    """Returns a text as troff prints it as it is."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain[:1] in (".", "'") else plain


def page() -> str:
    """Returns the manual page in the man macros."""
    context = click.Context(main, info_name="onnx-convert")
    said = (main.help or "").removeprefix("\b\n").splitlines()
    lines = ['.\\" SPDX-License-Identifier: Apache-2.0', ".TH ONNX\\-CONVERT 1", ".SH NAME"]
    lines += [escaped("onnx-convert - " + said[0][0].lower() + said[0][1:].rstrip(".")), ".SH SYNOPSIS"]
    lines += [".B " + escaped("onnx-convert"), "[OPTIONS] MODEL...", ".SH DESCRIPTION", *map(escaped, said)]
    lines += [".SH OPTIONS"]
    for title, group in GROUPS.items():
        lines.append(f".SS {escaped(title)}")
        for option in group:
            if record := option.get_help_record(context):
                lines += [".TP", f".B {escaped(record[0].strip())}", escaped(record[1])]
    codes = (main.epilog or "").removeprefix("Exit codes: ").rstrip(".").split(", ")
    lines.append(".SH EXIT STATUS")
    for code in codes:
        number, _, meaning = code.partition(" ")
        lines += [".TP", f".B {number}", escaped(meaning)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PLACE.write_text(page())
