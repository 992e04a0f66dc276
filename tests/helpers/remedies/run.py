# SPDX-License-Identifier: Apache-2.0
"""Follows the remedies of all refusals on all ways of all rows, and prints those that lead nowhere.

usage: PYTHONPATH=tests/helpers python -m remedies.run [--jobs 2] [--variants plain ...] [--every 1] [--first 0]

Each process takes every other row, in every variant that is asked for: as it stands to each lower opset, else to some;
`--every 10` takes a tenth of the rows. The exit code is 1 if there is a dead end. On two cores, the rows as they stand
take about four minutes, all variants a quarter of an hour.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
from typing import TYPE_CHECKING

from remedies.walk import SOME, WALKED, Walk, walked_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


def walked(variants: Sequence[str], every: int, first: int) -> Walk:
    """Walks every so-manieth row, from the `first` on, in these variants. The rows are shuffled, always alike, so that
    the slow ones of a family do not meet in one process."""
    walk, rows = Walk(), walked_rows()
    random.Random(1).shuffle(rows)
    for variant in variants:
        for row in rows[first::every]:
            some = sorted({row.target, *(opset for opset in SOME if opset < row.source)})
            walk.row(row, variant, () if variant == "plain" else some)
    return walk


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--variants", nargs="+", choices=WALKED, default=WALKED)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    started = time.perf_counter()
    parts = [(asked.variants, asked.every * asked.jobs, asked.first + asked.every * job) for job in range(asked.jobs)]
    with multiprocessing.get_context("spawn").Pool(asked.jobs) as pool:
        walks = pool.starmap(walked, parts)
    dead_ends = {key: text for walk in walks for key, text in walk.dead_ends.items()}
    for text in dead_ends.values():
        print(f"- {text}")
    ways, followed = sum(walk.ways for walk in walks), sum(walk.followed for walk in walks)
    seconds = time.perf_counter() - started
    print(f"{ways} ways planned, {followed} refusals followed, {len(dead_ends)} dead ends, {seconds:.0f} s")
    return 1 if dead_ends else 0


if __name__ == "__main__":
    raise SystemExit(main())
