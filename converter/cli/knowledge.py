# SPDX-License-Identifier: Apache-2.0
"""Answers what needs no model: what is known of runtimes and of operators."""

from __future__ import annotations

import sys

from onnx_convert.cli import printing, signals, tables
from onnx_convert.cli.places import STREAM
from onnx_convert.errors import UsageError


def list_runtimes(name: str, *, as_json: bool, debug: bool) -> int:
    """Prints what is known of all runtimes, or of one; returns the exit code."""
    from onnx_convert.target import runtimes

    try:
        rows = runtimes.rows_of(name) if name else runtimes.listed()
    except UsageError as error:
        return printing.failed(error, as_json=as_json, debug=debug)
    if as_json:
        printing.print_data([row.to_dict() for row in rows])
    else:
        notes = [f"note: {note}" for row in rows for note in row.notes]
        printing.show([*tables.runtime_tables(rows), *notes], sys.stdout)
    return 0


def read_message(message: str, *, as_json: bool, debug: bool) -> int:
    """Prints what to type after a message of a runtime ("-": the one on stdin, "": each that is known); returns the
    exit code."""
    try:
        from onnx_convert.target import messages

        text = sys.stdin.buffer.read().decode(errors="replace") if message == STREAM else message
        told = messages.advice_on(text) if message else messages.all_of_them()
        if as_json:
            printing.print_data([advice.to_dict() for advice in told])
        else:
            printing.show([*tables.message_tables(told, whole=not message)], sys.stdout)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends as one line and an exit code
        return printing.failed(error, as_json=as_json, debug=debug)
    return 0


def tell_operators(operator: str | None, *, as_json: bool, debug: bool) -> int:
    """Prints what is known of an operator, or of all of them if none is named; returns the exit code."""
    try:
        with signals.held_back():
            from onnx_convert.cli import operator_tables
            from onnx_convert.reference import operators

        told = operators.coverage() if operator is None else operators.explain(operator)
        if as_json:
            printing.print_data(told.to_dict())
        else:
            printing.show(operator_tables.tables(told, drawn="@" in (operator or "")), sys.stdout)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends as one line and an exit code
        return printing.failed(error, as_json=as_json, debug=debug)
    return 0
