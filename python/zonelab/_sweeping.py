"""Running a sweep, whatever runs its tasks."""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from os import PathLike
from typing import TYPE_CHECKING, Any

from zonelab._native import Sweep, SweepResults, SweepStore
from zonelab.errors import EnvironmentFailure, ZonelabError
from zonelab.executors import Backend, Executor, backend, many

if TYPE_CHECKING:
    from zonelab._native import Progress, Settings, SweepSource

IN_FLIGHT = 3
"""Batches that are given out for each worker: it never waits for the coordinator."""


def sweep(
    source: SweepSource,
    *,
    executor: Executor | None = None,
    out: str | PathLike[str] | None = None,
    set: Settings | None = None,
    seed: int = 1,
    points: int | None = None,
    repeats: int | None = None,
    quick: bool = False,
    threads: int | None = None,
    force: bool = False,
    format: str | None = None,
    retries: int = 3,
    progress: Progress | None = None,
) -> SweepResults:
    """Runs a sweep and gives its data set.

    ``source`` is the path of a sweep file, TOML text, or a dictionary of what the file would
    say; or a ``Sweep``, which has its settings. ``executor`` is where its runs run: threads of
    this process without it, and else what ``zonelab.executors`` lists. Results go to ``out``,
    by default ``results/NAME/HASH``, a directory for each configuration, to the newest of which
    ``results/NAME/latest`` leads; what is there of the same sweep is not run again.
    ``format="parquet"`` writes the data set so, too, beside CSV and JSON Lines. A batch whose
    worker dies is run again, ``retries`` times at most.
    """
    if isinstance(source, Sweep):
        plan = source
    else:
        plan = Sweep(source, set=set, seed=seed, points=points, repeats=repeats, quick=quick)
    # What cannot run it is no reason for a directory.
    threads = _own_threads(executor, threads)
    workers = None if threads is not None or executor is None else backend(executor)
    store = plan.open(out, force=force, format=format)
    try:
        if workers is None:
            store.run(threads=threads or 0, progress=progress)
        else:
            coordinate(store, workers, retries, progress)
        return store.finish()
    finally:
        # The traceback of an error would keep it open.
        store.close()


def _own_threads(executor: Executor | None, threads: int | None) -> int | None:
    """Threads of this process, if that is where the sweep runs; 0: one for each core."""
    if executor is None:
        return threads or 0
    if not isinstance(executor, str):
        return None
    name, _, number = executor.partition(":")
    if name != "threads":
        return None
    return many(number, executor) if number else threads or 0


def coordinate(
    store: SweepStore,
    workers: Backend,
    retries: int = 3,
    progress: Progress | None = None,
) -> None:
    """Has the tasks that are left run by workers elsewhere, and keeps what they give.

    A sweep that chooses its points while it runs goes on with the next ones, until it has
    enough.
    """
    try:
        while True:
            _run_left(store, workers, retries, progress)
            if not store.grow():
                return
    finally:
        workers.close()


def _run_left(store: SweepStore, workers: Backend, retries: int, progress: Progress | None) -> None:
    """Has the tasks run that are left now."""
    running: dict[Any, tuple[list[int], int]] = {}
    count = workers.workers()
    left = deque((batch, 0) for batch in store.batches(count))
    pack = store.to_bytes()
    try:
        while left or running:
            while left and len(running) < count * IN_FLIGHT:
                batch, failures = left.popleft()
                running[workers.submit(pack, batch)] = (batch, failures)
            for done in list(workers.wait(running)):
                batch, failures = running.pop(done)
                try:
                    lines = workers.result(done)
                except ZonelabError:
                    # It would be the same elsewhere.
                    raise
                except (Exception, CancelledError) as error:
                    workers.failed(done, error)
                    _failed(error, failures, retries)
                    left.append((batch, failures + 1))
                else:
                    store.append(lines)
                    if progress is not None:
                        finished, _, tasks = store.counts
                        progress(finished, tasks)
    finally:
        if running:
            workers.cancel(running)


def _failed(error: BaseException, failures: int, retries: int) -> None:
    """A batch came to nothing: is it to be tried again?"""
    if failures >= retries:
        message = (
            f"a batch of the sweep failed {failures + 1} times, the last time with "
            f"{type(error).__name__}: {error}; what was done is kept, and the same sweep goes on "
            "from it"
        )
        raise EnvironmentFailure(message) from error
