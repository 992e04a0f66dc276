# SPDX-License-Identifier: Apache-2.0
"""Converts or checks many models as it was asked for: a line for each as it ends, and what came of all."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from typing import TYPE_CHECKING

from onnx_convert.cli import github, printing, signals, tables
from onnx_convert.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onnx_convert.batch.job import Outcome
    from onnx_convert.batch.run import Batch
    from onnx_convert.cli.settings import Settings


def run(asked: Settings) -> int:
    """Does what was asked for with many models; returns the worst of their exit codes."""
    if not asked.dask:
        from onnx_convert.batch import processes

        processes.warm_up()  # first of all: it imports while we do
    with signals.held_back():
        from onnx_convert.batch.run import convert_many
        from onnx_convert.batch.workers import cluster
    from onnx_convert.cli import many_report

    codes: Counter[str] = Counter()
    changes = False
    try:
        many_report.check(asked)
        with contextlib.ExitStack() as stack:
            executor = stack.enter_context(cluster(asked.dask)) if asked.dask else None
            batch = stack.enter_context(convert_many(asked.named(), asked.target(), executor=executor, **asked.many()))
            note = stack.enter_context(many_report.opened(asked, batch))
            advance = stack.enter_context(_bar(batch, shown=not asked.quiet and sys.stderr.isatty()))
            for outcome in batch:
                changes |= bool(outcome.ok and outcome.report and outcome.report["changed"])
                if outcome.exit_code == RefusedError.exit_code and outcome.report:
                    codes.update(refusal["code"] for refusal in outcome.report["refusals"])
                _tell(outcome, asked)
                note(outcome)
                advance(outcome)
        _sum_up(batch, codes, asked)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends as one line and an exit code
        return printing.failed(error, as_json=asked.as_json, debug=asked.debug)
    return batch.exit_code or (printing.WOULD_CHANGE if asked.exit_code and changes else 0)


def _tell(outcome: Outcome, asked: Settings) -> None:
    """Prints how one model ended: on stdout what is well, on stderr what is not."""
    if asked.as_json:
        printing.print_lines([printing.json_line(outcome.to_dict())])
    elif outcome.ok and not asked.quiet:
        printing.print_lines([tables.outcome_line(outcome)])
    elif not outcome.ok:
        printing.print_lines([tables.outcome_line(outcome)], err=True)
    if asked.output_format == "github":
        printing.print_lines(github.of_outcome(outcome))


def _sum_up(batch: Batch, codes: Counter[str], asked: Settings) -> None:
    """Prints how many models ended how, and why nodes were refused."""
    counts = {status: count for status, count in batch.counts.items() if count}
    if asked.as_json:
        total = {"status": "done", "models": len(batch), "counts": counts, "codes": dict(codes.most_common())}
        printing.print_lines([printing.json_line(total)])
    elif not asked.quiet:
        ended = ", ".join(f"{count} {status}" for status, count in counts.items())
        printing.print_lines([f"{len(batch)} {tables.plural(len(batch), 'model')}: {ended}"])
        if codes:
            reasons = ", ".join(f"{count} {code}" for code, count in codes.most_common())
            printing.print_lines([f"refused nodes: {reasons}"])


@contextlib.contextmanager
def _bar(batch: Batch, *, shown: bool) -> Iterator[Callable[[Outcome], None]]:
    """Yields what to tell of each outcome; on a terminal it draws how far the batch is, how fast, and for how long."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(batch), rate="")

        def advance(outcome: Outcome) -> None:
            bar.advance(task)
            speed = bar.tasks[task].speed
            rate = f"{speed:.1f} a second" if speed else ""
            bar.update(task, description=tables.printable(batch.at_work() or outcome.name), rate=rate)

        yield advance
