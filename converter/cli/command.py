# SPDX-License-Identifier: Apache-2.0
"""The command as click sees it: options in groups, every error in one line, an exit code for each ending."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from onnx_convert.cli import hints, printing, signals, streams
from onnx_convert.cli.options import GROUPS


class Command(click.Command):
    """Options in groups and aligned throughout; every error in one line; an exit code of our own for each ending."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the groups of `options`, in columns of one width throughout."""
        width = 32
        for title, group in GROUPS.items():
            with formatter.section(title):
                shown = (*group, self.get_help_option(ctx)) if group is [*GROUPS.values()][-1] else group
                records = [record for option in shown if option and (record := option.get_help_record(ctx))]
                formatter.write_dl([(term.ljust(width), text) for term, text in records], col_max=width)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Returns `--help`, with a text like those of the other options."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "print this"
        return option

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the line; what does not exist ends in a hint at what does."""
        line = [*args]
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = {name for parameter in self.params for name in parameter.opts}
            if hint := hints.of_option(error.option_name, line, known):
                raise click.UsageError(hint, ctx) from error
            raise
        models = ctx.params["models"]
        if hint := hints.of_arguments(models):
            raise click.UsageError(hint, ctx)
        if "" in (*models, ctx.params["output"]):
            raise click.UsageError("A file name is empty.", ctx)
        return rest

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Runs and ends the program, with the exit code that the command returns."""
        streams.open_those_that_are_closed()
        try:
            with signals.ended_by_signals():
                code = super().main(*args, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            code = error.exit_code
            printing.print_error(f"{error.format_message()} (try --help)")
        except click.Abort:
            code = 130
        sys.exit(code)
