"""Where the runs of a sweep run.

``zonelab.sweep(file, executor=...)`` takes

* nothing, or ``"threads"`` or ``"threads:4"``: threads of this process, in Rust;
* ``"processes"`` or ``"processes:4"``: processes of this machine;
* ``"dask:tcp://127.0.0.1:8786"`` or ``"tcp://127.0.0.1:8786"``: the workers of a Dask scheduler;
* ``"ray"`` or ``"ray:ADDRESS"``: a Ray cluster;
* a ``distributed.Client`` or its ``get_executor()``, so that ``dask_jobqueue.SLURMCluster`` is
  one line;
* anything with ``submit`` and ``map`` in the style of ``concurrent.futures``; a
  ``submitit.AutoExecutor`` has it too, for Slurm without Dask;
* a function that makes one of these, if a pool that broke is to be replaced;
* a ``Backend``: the interface to anything else.

Whatever it is, the data set is the same, byte for byte: a run depends on nothing but the sweep
and its number.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent import futures
from typing import Any, Protocol, TypeAlias, runtime_checkable

from zonelab._native import run_batch
from zonelab.errors import EnvironmentFailure, UsageError

POLL_S = 0.05
"""How often what cannot be waited for is looked at."""

CONNECT_S = 10
"""How long a scheduler may take to answer."""


def run_tasks(pack: bytes, tasks: list[int]) -> bytes:
    """What a worker does, as a function of Python: one that can be sent by its name."""
    return run_batch(pack, tasks)


@runtime_checkable
class Submits(Protocol):
    """An executor in the style of ``concurrent.futures``."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Runs ``fn`` elsewhere, and gives its future at once."""


class Backend(ABC):
    """The one door through which a sweep uses workers, whatever they are.

    A sweep gives batches of tasks to ``submit``, never more than some for each of
    ``workers``, waits for any of them with ``wait``, and takes what they gave with ``result``,
    which raises if the worker died. Then the batch is given to ``submit`` again.
    """

    @abstractmethod
    def workers(self) -> int:
        """How many batches run at a time."""

    @abstractmethod
    def submit(self, pack: bytes, tasks: Sequence[int]) -> Any:
        """Runs ``run_tasks(pack, tasks)`` elsewhere; gives something hashable."""

    @abstractmethod
    def wait(self, running: Collection[Any]) -> Iterable[Any]:
        """Waits until some of what was submitted is done or failed, and gives those.

        It may give none after some time, and then is asked again.
        """

    @abstractmethod
    def result(self, done: Any) -> bytes:
        """What one that is done gave, or its exception."""

    def failed(self, done: Any, error: BaseException) -> None:
        """Told of each failure, before its batch is submitted again.

        Raises if that would not help.
        """

    def cancel(self, running: Collection[Any]) -> None:
        """Nobody waits for these any more."""

    def close(self) -> None:
        """The sweep is over, done or not."""


class Futures(Backend):
    """Executors in the style of ``concurrent.futures``: pools of threads and processes, that
    of Dask, those of submitit.
    """

    def __init__(self, make: Submits | Callable[[], Submits], workers: int | None = None) -> None:
        """An executor, or what makes one, which then can be replaced when it breaks."""
        self._make = None if isinstance(make, Submits) else make
        self._executor: Any = make if isinstance(make, Submits) else make()
        self._workers = workers
        # Which executor a future is of: that of a broken one may be replaced already.
        self._executor_of: dict[Any, Any] = {}

    def workers(self) -> int:
        """As many as the executor says that it has, or else one for each core."""
        of_pool = getattr(self._executor, "_max_workers", None)
        return self._workers or of_pool or os.cpu_count() or 1

    def submit(self, pack: bytes, tasks: Sequence[int]) -> Any:
        """A future of the executor."""
        try:
            future = self._executor.submit(run_tasks, pack, list(tasks))
        except futures.BrokenExecutor as error:
            self._replace(self._executor, error)
            future = self._executor.submit(run_tasks, pack, list(tasks))
        self._executor_of[future] = self._executor
        return future

    def wait(self, running: Collection[Any]) -> Iterable[Any]:
        """Any that is done."""
        if all(isinstance(one, futures.Future) for one in running):
            return futures.wait(running, return_when=futures.FIRST_COMPLETED).done
        done = [one for one in running if one.done()]
        if not done:
            time.sleep(POLL_S)
        return done

    def result(self, done: Any) -> bytes:
        """What its future has."""
        lines = done.result()
        self._executor_of.pop(done, None)
        return lines

    def failed(self, done: Any, error: BaseException) -> None:
        """Replaces a pool of processes of which one died, if it is known how."""
        executor = self._executor_of.pop(done, None)
        if isinstance(error, futures.BrokenExecutor):
            self._replace(executor, error)

    def _replace(self, executor: Any, error: BaseException) -> None:
        if executor is not self._executor:
            return
        if self._make is None:
            message = (
                f"the executor broke ({error}); what was done is kept, and the same sweep goes "
                "on from it. With a function that makes an executor, it would be replaced"
            )
            raise EnvironmentFailure(message) from error
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._make()

    def cancel(self, running: Collection[Any]) -> None:
        """What has not begun does not begin."""
        for one in running:
            one.cancel()

    def close(self) -> None:
        """Ends the executor, if it was made here."""
        if self._make is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


class Dask(Backend):
    """The workers of a Dask scheduler, by a ``distributed.Client`` or its address."""

    def __init__(self, client: Any) -> None:
        """A client, or the address of a scheduler."""
        self._is_ours = isinstance(client, str)
        if isinstance(client, str):
            client = _dask_client(client)
        self._client: Any = client
        self._packs: dict[bytes, Any] = {}

    def workers(self) -> int:
        """The threads of all workers, waiting for one if there is none yet."""
        self._client.wait_for_workers(1)
        threads = self._client.nthreads().values()
        return max(1, sum(threads))

    def submit(self, pack: bytes, tasks: Sequence[int]) -> Any:
        """A future of Dask; the sweep itself is sent to each worker once."""
        if pack not in self._packs:
            # Of a sweep that grows, only the newest is of use.
            self._packs = {pack: self._client.scatter(pack, broadcast=True, hash=False)}
        # Not `pure`: a batch that is submitted again is to run again.
        return self._client.submit(run_tasks, self._packs[pack], list(tasks), pure=False)

    def wait(self, running: Collection[Any]) -> Iterable[Any]:
        """Any that is done."""
        import distributed

        with self._client.as_current():
            waited: Any = distributed.wait(list(running), return_when="FIRST_COMPLETED")
        return waited.done

    def result(self, done: Any) -> bytes:
        """What its future has."""
        return done.result()

    def failed(self, done: Any, error: BaseException) -> None:
        """A worker that died may have been the one that had the sweep."""
        self._packs.clear()

    def cancel(self, running: Collection[Any]) -> None:
        """What has not begun does not begin."""
        self._client.cancel(list(running))

    def close(self) -> None:
        """Leaves the scheduler, if it was found here."""
        self._packs.clear()
        if self._is_ours:
            self._client.close()


def _dask_client(address: str) -> Any:
    try:
        import distributed
    except ImportError as error:
        raise EnvironmentFailure(f"{address}: pip install distributed") from error
    try:
        return distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except OSError as error:
        raise EnvironmentFailure(f"{address}: no Dask scheduler answers: {error}") from error


class Ray(Backend):
    """The workers of a Ray cluster."""

    def __init__(self, address: str | None = None) -> None:
        """The cluster of an address; without it, the one that is there, or one of this machine."""
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise EnvironmentFailure("ray: pip install ray") from error
        self._ray: Any = ray
        if not self._ray.is_initialized():
            self._ray.init(address=address, log_to_driver=False)
        # What is run again after a worker died is for the sweep to say.
        self._run: Any = self._ray.remote(max_retries=0)(run_tasks)
        self._packs: dict[bytes, Any] = {}

    def workers(self) -> int:
        """The processors of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, pack: bytes, tasks: Sequence[int]) -> Any:
        """A reference of Ray; the sweep itself is stored once."""
        if pack not in self._packs:
            # Of a sweep that grows, only the newest is of use.
            self._packs = {pack: self._ray.put(pack)}
        return self._run.remote(self._packs[pack], list(tasks))

    def wait(self, running: Collection[Any]) -> Iterable[Any]:
        """Any that is done."""
        done, _ = self._ray.wait(list(running), num_returns=1)
        return done

    def result(self, done: Any) -> bytes:
        """What its reference has."""
        return self._ray.get(done)

    def cancel(self, running: Collection[Any]) -> None:
        """What has not begun does not begin."""
        for one in running:
            self._ray.cancel(one)


Executor: TypeAlias = str | Backend | Submits | Callable[[], Submits]
"""Whatever a sweep may be run by."""


def backend(executor: Executor) -> Backend:
    """The door to an executor."""
    if isinstance(executor, Backend):
        return executor
    if isinstance(executor, str):
        return _named(executor)
    if type(executor).__module__.partition(".")[0] == "distributed":
        # A client has no `shutdown` of an executor, and its futures are others.
        if hasattr(executor, "scheduler_info"):
            return Dask(executor)
        return Futures(executor, workers=_dask_workers(executor))
    if isinstance(executor, Submits) or callable(executor):
        return Futures(executor)
    message = f"executor = {executor!r}: see the documentation of zonelab.executors"
    raise UsageError(message)


def _dask_workers(executor: Any) -> int | None:
    """The threads behind the executor of a client of Dask."""
    client = getattr(executor, "_client", None)
    return sum(client.nthreads().values()) if client is not None else None


def _named(name: str) -> Backend:
    kind, _, rest = name.partition(":")
    if kind in ("tcp", "tls", "ucx", "inproc", "ws", "wss"):
        return Dask(name)
    if kind == "dask" and rest:
        return Dask(rest)
    if kind == "ray":
        return Ray(rest or None)
    if kind == "processes":
        number = many(rest, name)
        # Not by forking, which takes over locks that threads of this process hold.
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        return Futures(lambda: futures.ProcessPoolExecutor(number, mp_context=context))
    message = (
        f'executor = "{name}": threads[:N], processes[:N], dask:tcp://HOST:PORT, '
        "tcp://HOST:PORT or ray[:ADDRESS]"
    )
    raise UsageError(message)


def many(text: str, name: str) -> int:
    """A number of workers; none is one for each core."""
    if not text:
        return os.cpu_count() or 1
    if text.isdecimal() and 1 <= int(text) <= 1024:
        return int(text)
    raise UsageError(f'executor = "{name}": 1 to 1024 workers')
