"""What Python costs: a run, a table, and a sweep under Dask beside threads of one process.

    python python/bench/runs.py

Prints figures and ratios; ``docs/performance.md`` has those of one machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from statistics import median

import distributed

import zonelab

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"

NOTHING = """
schema = 1
id = "nothing"
title = "A run of almost nothing"
profile = "confznspp"

[axis]
name = "depth"
values = [1]

[[job]]
name = "read"
work = "read"
zones = "0..=0"
block = "16KiB"
queue_depth = "$x"
runtime = "100us"

[[series]]
name = "reads"
full_zones = "0..=0"
jobs = ["read"]
"""
"""An experiment whose time is what it costs to run any."""

NOTHING_SWEEP = """
schema = 1
experiment = "{file}"
sample = "grid"
repeats = 100

[[vary]]
key = "job.0.queue_depth"
values = [1]
"""
"""The same a hundred times."""


TURNS = 5
"""How often each kind of sweep runs."""


def seconds(work: Callable[[], object], times: int) -> float:
    """The median of so many tries."""
    tries: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        tries.append(time.perf_counter() - begun)
    return median(tries)


def line(name: str, value: float, unit: str, goal: str = "") -> None:
    """One figure."""
    print(f"{name:<52} {value:>10.3f} {unit:<8} {goal}".rstrip(), flush=True)


def runs() -> None:
    """A call of ``run``, beside the same run by Rust alone."""
    zonelab.run(NOTHING, threads=1)
    experiment = zonelab.Experiment(NOTHING)
    call = 1e3 * seconds(lambda: zonelab.run(experiment, threads=1), 500)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "nothing.toml"
        file.write_text(NOTHING)
        pack = zonelab.Sweep(NOTHING_SWEEP.format(file=file)).to_bytes()
    many = list(range(100))
    alone = 1e3 * seconds(lambda: zonelab.run_batch(pack, many), 20) / len(many)
    line("a run of almost nothing", call, "ms")
    line("the same as a task of a sweep, by Rust alone", alone, "ms")
    line("Python, its checks, threads and tables", call - alone, "ms", "goal < 1")
    text = 1e3 * seconds(lambda: zonelab.run(NOTHING, threads=1), 200)
    line("from its text, which is read each time", text, "ms")
    results = zonelab.reproduce("CM", quick=True)
    frame = results.points
    line("points to an Arrow table of pyarrow", 1e6 * seconds(frame.to_arrow, 200), "us")


def rate(work: Callable[[Path], zonelab.SweepResults]) -> float:
    """Runs of a sweep per second."""
    with tempfile.TemporaryDirectory() as directory:
        begun = time.perf_counter()
        results = work(Path(directory) / "out")
        return len(results) / (time.perf_counter() - begun)


def sweeps(points: int) -> None:
    """A sweep by two threads of one process beside one, and by two workers of Dask beside that.

    What is compared runs in turn, since a machine is not as fast all the time.
    """
    plan = zonelab.Sweep(EXAMPLES / "sweep-interference.toml", quick=True, points=points)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "scheduler.json"
        at = ["--scheduler-file", str(file)]
        programs = [
            start("scheduler", *at, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *(start("worker", *at, "--nthreads", "1", "--no-dashboard") for _ in range(2)),
        ]
        try:
            with distributed.Client(scheduler_file=str(file), timeout=60) as client:
                client.wait_for_workers(2, timeout=60)
                # The workers import the package.
                client.run(os.getpid)
                rate(lambda out: zonelab.sweep(plan, executor=client, out=out))
                turns = [turn(plan, client) for _ in range(TURNS)]
        finally:
            for program in programs:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, SIGKILL)
                program.wait()
    line("sweep, one thread", median(one for one, *_ in turns), "runs/s")
    line("sweep, two threads", median(two for _, two, *_ in turns), "runs/s")
    threads = median(two / (2 * one) for one, two, *_ in turns)
    line("two threads to twice one", threads, "", "goal > 0.9")
    busy = median(busy for *_, busy in turns)
    line("share of two cores that two threads use", busy, "", "goal > 0.9")
    line("sweep, Dask with two workers", median(dask for _, _, dask, _ in turns), "runs/s")
    line("Dask to two threads", median(dask / two for _, two, dask, _ in turns), "", "goal >= 0.9")


def turn(plan: zonelab.Sweep, client: distributed.Client) -> tuple[float, float, float, float]:
    """Runs per second of one thread, of two, and of Dask; and how busy the two were."""
    one = rate(lambda out: zonelab.sweep(plan, threads=1, out=out))
    two = rate(lambda out: zonelab.sweep(plan, threads=2, out=out))
    with tempfile.TemporaryDirectory() as directory:
        store = plan.open(Path(directory) / "out", force=False)
        begun, used = time.perf_counter(), time.process_time()
        store.run(threads=2, progress=None)
        busy = (time.process_time() - used) / (time.perf_counter() - begun) / 2
    return one, two, rate(lambda out: zonelab.sweep(plan, executor=client, out=out)), busy


def start(name: str, *words: str) -> subprocess.Popen[bytes]:
    """Starts a program of Dask."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *words]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)


if __name__ == "__main__":
    runs()
    sweeps(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
