"""``python -m zonelab sweep``: a sweep whose runs run anywhere.

Everything else is the command's, which needs no Python.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import TYPE_CHECKING

import zonelab

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130
"""Exit code of what was interrupted, as of the command."""


def main(words: list[str] | None = None) -> int:
    """Runs the command, and gives its exit code."""
    args = _parser().parse_args(words)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    try:
        results = zonelab.sweep(
            args.file,
            executor=args.executor,
            out=args.out,
            set=args.set,
            seed=args.seed,
            points=args.points,
            repeats=args.repeats,
            quick=args.quick,
            force=args.force,
            format=args.format,
            threads=args.threads,
            progress=None if args.quiet or not sys.stderr.isatty() else _progress,
        )
    except zonelab.ZonelabError as error:
        print(f"zonelab: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("zonelab: interrupted; the same command goes on from what was done", file=sys.stderr)
        return INTERRUPTED
    print(results)
    for file in results.files:
        print(file)
    return 0


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _progress(done: int, total: int) -> None:
    """One line on standard error, written over again and again."""
    end = "\n" if done == total else ""
    print(f"\rzonelab: {done} of {total} runs", end=end, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m zonelab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    sweep = commands.add_parser("sweep", help="run a sweep", description=zonelab.sweep.__doc__)
    add = sweep.add_argument
    add("file", help="the sweep file")
    add(
        "--executor",
        help="threads[:N], processes[:N], dask:tcp://HOST:PORT, ray[:ADDRESS] [default: threads]",
    )
    add("--set", action="append", metavar="KEY=VALUE", help="change a setting for all points")
    add("--seed", type=int, default=1, help="seed of all randomness")
    add("--points", type=int, metavar="N", help="so many points, in place of those of the file")
    add("--repeats", type=int, metavar="N", help="so many repeats of each point")
    add("--quick", action="store_true", help="the reduced form")
    add("--out", metavar="DIR", help="where results go [default: results/NAME]")
    add("--force", action="store_true", help="replace results of another configuration there")
    add("--format", choices=["parquet"], help="write the data set in this form, too")
    add("--threads", type=int, metavar="N", help="threads of this process [default: each core]")
    add("--quiet", "-q", action="store_true", help="no progress")
    return parser


if __name__ == "__main__":
    sys.exit(main())
