"""Sweeps: the same data set whatever runs them, and whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import distributed
import pyarrow.parquet as pq
import pytest

import zonelab
from zonelab import executors

FILES = ("sweep.csv", "sweep.jsonl", "sweep.json", "sweep.html")
"""What has to be the same."""

SWEEP = """
schema = 1
title = "Pauses"
experiment = "small.toml"
sample = "grid"

[[vary]]
name = "granularity"
key = "drive.finish.granularity"
values = ["16KiB", "64KiB", "256KiB"]

[[vary]]
name = "pause"
key = "drive.finish.pause"
values = ["0us", "100us", "1ms", "10ms"]

[[objective]]
goal = "maximize"
series = "beside finishes"
x = ["4"]
job = "read"
metric = "kiops"
"""

SEARCH = (
    SWEEP.replace('"grid"', '"evolve"\npoints = 10')
    + """
[[objective]]
goal = "maximize"
series = "beside finishes"
x = ["4"]
job = "finish"
metric = "ops_s"
"""
)
"""Points that are chosen while it runs."""


@pytest.fixture
def file(tmp_path: Path, small: str) -> Path:
    """A sweep file of twelve points."""
    (tmp_path / "small.toml").write_text(small)
    path = tmp_path / "pauses.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture
def expected(file: Path, tmp_path: Path) -> dict[str, bytes]:
    """What threads of this process give."""
    return contents(zonelab.sweep(file, out=tmp_path / "expected", threads=1))


def contents(results: zonelab.SweepResults) -> dict[str, bytes]:
    """The files of a sweep."""
    return {name: (results.path / name).read_bytes() for name in FILES}


def start(*words: str) -> subprocess.Popen[bytes]:
    """Starts a program of Python in a process group of its own."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", *words], start_new_session=True, stdout=quiet, stderr=quiet
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a program, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler of Dask with two workers, each a process of its own."""
    file = tmp_path_factory.mktemp("dask") / "scheduler.json"
    at = ("--scheduler-file", str(file))
    begun = [
        start("distributed.cli.dask_scheduler", *at, "--host", "127.0.0.1", "--port", "0",
              "--dashboard-address", ":0"),
    ]  # fmt: skip
    try:
        begun.extend(
            start("distributed.cli.dask_worker", *at, "--nthreads", "1", "--no-dashboard")
            for _ in range(2)
        )
        with distributed.Client(
            scheduler_file=str(file), timeout=60, set_as_default=False
        ) as client:
            client.wait_for_workers(2, timeout=60)
            address = str(client.scheduler_info()["address"])
        yield address
    finally:
        for process in begun:
            stop(process)


def test_the_data_set_is_that_of_the_command(
    command: Callable[..., str], file: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "theirs"
    command("sweep", str(file), "--quiet", "--out", str(out))
    assert {name: (out / name).read_bytes() for name in FILES} == expected


def test_any_executor_gives_the_same_bytes(
    file: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    spawn = get_context("spawn")
    with (
        ThreadPoolExecutor(2) as threads,
        ProcessPoolExecutor(2, mp_context=spawn) as processes,
    ):
        for name, executor in {"threads": threads, "processes": processes}.items():
            results = zonelab.sweep(file, executor=executor, out=tmp_path / name)
            assert contents(results) == expected
    results = zonelab.sweep(file, executor="threads:2", out=tmp_path / "own")
    assert contents(results) == expected


def noting(seen: list[tuple[int, int]]) -> Callable[[int, int], None]:
    """Progress that is kept."""
    return lambda done, total: seen.append((done, total))


def test_dask_gives_the_same_bytes(
    scheduler: str, file: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    with distributed.Client(scheduler, set_as_default=False) as client:
        ways = {
            "address": scheduler,
            "name": f"dask:{scheduler}",
            "client": client,
            "executor": client.get_executor(),
        }
        for name, executor in ways.items():
            seen: list[tuple[int, int]] = []
            results = zonelab.sweep(
                file, executor=executor, out=tmp_path / name, progress=noting(seen)
            )
            assert contents(results) == expected
            assert seen[-1] == (12, 12)


@pytest.mark.parametrize("text", [SWEEP, SEARCH], ids=["grid", "evolve"])
def test_a_coordinator_that_is_killed_is_started_again(
    scheduler: str, file: Path, tmp_path: Path, text: str
) -> None:
    file.write_text(text)
    long = ("--set", "job.0.runtime=400ms")
    expected = contents(zonelab.sweep(file, set=long[1], out=tmp_path / "expected"))
    for executor in (f"dask:{scheduler}", "threads:1"):
        out = tmp_path / executor.partition(":")[0]
        words = ("sweep", str(file), "--executor", executor, "--out", str(out), *long)
        log = out / "evaluations.jsonl"
        process = start("zonelab", *words)
        done = 0
        while done < 3 and process.poll() is None:
            time.sleep(0.005)
            done = log.read_bytes().count(b"\n") - 1 if log.exists() else 0
        stop(process)
        before = log.read_bytes()
        assert 3 <= before.count(b"\n") - 1 < 12, "it was to be killed in the middle"
        assert not (out / "sweep.csv").exists()
        run = subprocess.run(
            [sys.executable, "-m", "zonelab", *words],
            capture_output=True,
            check=True,
            text=True,
        )
        assert str(out / "sweep.csv") in run.stdout
        assert {name: (out / name).read_bytes() for name in FILES} == expected


def test_points_are_chosen_while_it_runs_whatever_runs_it(file: Path, tmp_path: Path) -> None:
    file.write_text(SEARCH)
    plan = zonelab.Sweep(file)
    assert len(plan) == 10
    assert 0 < len(plan.points()) < 10
    seen: list[tuple[int, int]] = []
    results = zonelab.sweep(plan, out=tmp_path / "threads", progress=noting(seen))
    # At most so many: near the front there may be none left that was not looked at.
    assert 8 <= len(results) <= 10
    assert seen[-1] == (len(results), 10)
    assert len(results.standings) == len(results)
    workers = Mortal(lambda number: number % 5 == 2)
    others = zonelab.sweep(plan, executor=workers, out=tmp_path / "mortal")
    assert contents(others) == contents(results)


class Mortal(Executor):
    """An executor whose workers die at some of the batches."""

    def __init__(self, dies: Callable[[int], bool]) -> None:
        self.dies = dies
        self.given: list[list[int]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs it at once, unless the worker dies."""
        future: Future[Any] = Future()
        self.given.append(args[1])
        if self.dies(len(self.given)):
            future.set_exception(OSError("the worker died"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_batch_whose_worker_dies_is_run_again(
    file: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    workers = Mortal(lambda number: number % 3 == 1)
    results = zonelab.sweep(file, executor=workers, out=tmp_path / "out")
    assert contents(results) == expected
    given = [task for batch in workers.given for task in batch]
    assert set(given) == set(range(12))
    assert len(given) > 12


def test_workers_that_always_die_end_the_sweep_which_goes_on_elsewhere(
    file: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dead = Mortal(lambda number: number > 5)
    with pytest.raises(zonelab.EnvironmentFailure, match=r"failed 4 times.*the worker died"):
        zonelab.sweep(file, executor=dead, out=out)
    done, _, tasks = zonelab.Sweep(file).open(out).counts
    assert 0 < done < tasks
    results = zonelab.sweep(file, executor=ThreadPoolExecutor(1), out=out)
    assert contents(results) == expected


def die(pack: bytes, tasks: list[int]) -> bytes:
    """A worker process that dies once, at the fourth task."""
    mark = Path(os.environ["ZONELAB_TEST_DIED"])
    if 3 in tasks and not mark.exists():
        mark.touch()
        os._exit(1)
    return zonelab.run_batch(pack, tasks)


def test_a_pool_of_processes_that_breaks_is_replaced(
    file: Path, expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZONELAB_TEST_DIED", str(tmp_path / "died"))
    monkeypatch.setattr(executors, "run_tasks", die)
    fork = get_context("fork")
    results = zonelab.sweep(
        file,
        executor=lambda: ProcessPoolExecutor(2, mp_context=fork),
        out=tmp_path / "out",
    )
    assert (tmp_path / "died").exists()
    assert contents(results) == expected
    (tmp_path / "died").unlink()
    with (
        ProcessPoolExecutor(2, mp_context=fork) as pool,
        pytest.raises(zonelab.EnvironmentFailure, match="what was done is kept"),
    ):
        zonelab.sweep(file, executor=pool, out=tmp_path / "other")


def test_workers_elsewhere_refuse_a_sweep_of_another_version(file: Path) -> None:
    pack = zonelab.Sweep(file).to_bytes()
    other = pack.replace(f'"{zonelab.__version__}"'.encode(), b'"0.0.0"')
    assert other != pack
    with pytest.raises(zonelab.InvalidInput, match=r"prepared by zonelab 0\.0\.0"):
        zonelab.run_batch(other, [0])
    with pytest.raises(zonelab.InvalidInput, match="no sweep"):
        zonelab.run_batch(b"{}", [0])


def test_the_frame_is_the_data_set(file: Path, tmp_path: Path) -> None:
    results = zonelab.sweep(file, out=tmp_path / "out", format="parquet")
    table = pq.read_table(results.path / "sweep.parquet")
    assert results.frame.to_arrow().to_pylist() == table.to_pylist()
    assert results.frame.columns == table.column_names
    standings = results.standings.to_dicts()
    assert len(standings) == 12
    best = max(standings, key=lambda row: row["beside finishes/read/kiops@4"])
    assert best["on_front"]
    sweep = zonelab.Sweep(file)
    assert (len(sweep), sweep.keys) == (12, ["granularity", "pause"])
    assert sweep.points()["pause"] == [row["pause"] for row in standings]


def test_names_of_executors_are_checked(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("thread", "threads:0", "processes:x", "dask:"):
        with pytest.raises(zonelab.UsageError, match="executor"):
            zonelab.sweep(file, executor=name, out=tmp_path / "out")
    monkeypatch.setattr(executors, "CONNECT_S", 1)
    with pytest.raises(zonelab.EnvironmentFailure, match="no Dask scheduler answers"):
        zonelab.sweep(file, executor="tcp://127.0.0.1:9", out=tmp_path / "out")
