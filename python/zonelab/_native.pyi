"""What of ``zonelab`` is written in Rust. Import it from ``zonelab``."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

from zonelab.policies import (
    AllocationPolicy,
    ElementsPolicy,
    ResetPolicy,
    ResetState,
    Scheduler,
    VictimPolicy,
)

__version__: str

ProfileSource: TypeAlias = str | PathLike[str] | Mapping[str, Any] | Profile
"""The name of a built-in drive, a path, TOML text, a dictionary, or a profile."""
ExperimentSource: TypeAlias = str | PathLike[str] | Mapping[str, Any] | Experiment
"""The id of a built-in experiment, a path, TOML text, a dictionary, or an experiment."""
Settings: TypeAlias = str | Iterable[str] | Mapping[str, Any]
"""``"key=value"`` texts, or a dictionary of keys and values; ``None`` takes a key out."""
Progress: TypeAlias = Callable[[int, int], object]
"""Called with what is done, and the whole."""

SweepSource: TypeAlias = str | PathLike[str] | Mapping[str, Any] | Sweep
"""A path, TOML text, a dictionary, or a sweep."""

def to_toml(data: Mapping[str, Any]) -> str:
    """A dictionary as TOML text, as zonelab reads it from files."""

def profiles() -> list[str]:
    """Names of the built-in drives."""

def experiments() -> list[str]:
    """Ids of the built-in experiments, in the order of the papers."""

def run(
    experiment: ExperimentSource,
    *,
    profile: ProfileSource | None = None,
    set: Settings | None = None,
    seed: int = 1,
    repeats: int | None = None,
    threads: int | None = None,
    quick: bool = False,
    trace: bool | str | Iterable[str] | None = None,
    progress: Progress | None = None,
    policies: Policies | None = None,
) -> Results:
    """Runs an experiment and gives what it measured.

    ``profile`` is a drive instead of the experiment's, ``set`` changes keys of the file or,
    with ``drive.`` in front, of the drive. The same ``seed`` gives the same results, whatever
    ``threads`` is; without it there is one for each core. ``repeats`` says how often each
    point runs, with seeds of its own. ``trace`` names points to trace, as ``"SERIES,X"``;
    ``True`` traces all. ``policies`` makes what decides in place of profiles and experiments.
    """

def reproduce(
    what: str | Iterable[str] | None = None,
    *,
    quick: bool = False,
    seed: int = 1,
    repeats: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Runs built-in experiments and compares them with what was published.

    ``what`` is ids such as ``"C10a"`` and letters of papers such as ``"C"``; without it, all.
    """

def fio(
    jobs: str | PathLike[str],
    device: ProfileSource,
    *,
    set: Settings | None = None,
    seed: int = 1,
    full_zones: tuple[int, int] | None = None,
    host_stack: str | None = None,
    nsid: int | None = None,
) -> JobReport:
    """Runs a job file of fio on an emulated drive in virtual time.

    ``jobs`` is the path of a job file, or its text. ``full_zones`` is the first zone that is
    full before any job, and the first that is not. ``host_stack`` is the storage stack of the
    host, by name; without it, the host takes no time. ``nsid`` is the namespace; a drive that
    has one needs none. What of the file has no meaning here, and jobs that did nothing, are
    warnings.
    """

def kv(
    workload: str,
    device: ProfileSource,
    *,
    set: Settings | None = None,
    workload_set: Settings | None = None,
    seed: int = 1,
    nsid: int | None = None,
) -> JobReport:
    """Runs a key-value workload on an emulated drive in virtual time.

    ``set`` changes keys of the drive, ``workload_set`` those of ``[job.kv]`` in experiments.
    ``nsid`` is the namespace; a drive that has one needs none.
    """

def m_inter(
    alone: Sequence[tuple[float, float]],
    beside: Sequence[tuple[float, float]],
    *,
    alpha: float = 0.5,
) -> float:
    """M^Inter, the interference of one operation on another (ConfZNS++, section 2.3).

    ``alone`` and ``beside`` are points ``(throughput, latency)`` of the operation alone and
    beside the other, at the same concurrency levels. ``alpha`` weighs throughput, and
    ``1 - alpha`` latency. 0 is no interference.
    """

@final
class Frame:
    """A table of results.

    It has the Arrow PyCapsule interface: ``pyarrow.table(frame)`` and
    ``polars.DataFrame(frame)`` take it over without a copy.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> list[Any]:
        """A column, as a list."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows, each as a dictionary."""

    def to_csv(self) -> str:
        """The table as comma-separated values, as the command writes them."""

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame of pandas, which has to be installed, and pyarrow."""

    def to_polars(self) -> polars.DataFrame:
        """A DataFrame of polars, which has to be installed."""

    def to_arrow(self) -> pyarrow.Table:
        """A Table of pyarrow, which has to be installed."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Profile:
    """A drive: a profile, with every default filled in and every rule checked."""

    def __new__(cls, source: ProfileSource, set: Settings | None = None) -> Profile: ...
    @property
    def name(self) -> str:
        """Its name."""

    @property
    def description(self) -> str:
        """What the drive is."""

    @property
    def source(self) -> str:
        """Where the numbers are from."""

    def to_toml(self) -> str:
        """The file that says all of it, defaults included."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""

    def describe(self) -> Frame:
        """Every key with its value and where that is from, and all that follows."""

@final
class Experiment:
    """An experiment: which drives, which jobs, and what the results are compared with."""

    def __new__(
        cls,
        source: ExperimentSource,
        *,
        profile: ProfileSource | None = None,
        set: Settings | None = None,
        quick: bool = False,
    ) -> Experiment: ...
    @property
    def id(self) -> str:
        """Its id."""

    @property
    def title(self) -> str:
        """What it is, in a line."""

    @property
    def text(self) -> str:
        """The file, as it is."""

    @property
    def series(self) -> list[str]:
        """The names of its series."""

    def to_dict(self) -> dict[str, Any]:
        """What the file says with its settings changed."""

    def points(self) -> Frame:
        """Its points: every series at every value of its axis."""

    def drive(self, point: int = 0) -> Profile:
        """The drive of a point, by its number among ``points()``."""

    def check(self) -> None:
        """Checks that every point can be run, which reading the file does not."""

    def __len__(self) -> int: ...

@final
class Results:
    """What experiments measured: tables, figures and traces."""

    @property
    def seed(self) -> int:
        """The seed of the run."""

    @property
    def experiments(self) -> list[str]:
        """Ids of the experiments that were run."""

    @property
    def skipped(self) -> list[str]:
        """What was not run of what was asked for, and why."""

    @property
    def points(self) -> Frame:
        """Every metric of every job at every point: ``points.csv`` of the command."""

    @property
    def metrics(self) -> Frame:
        """The same with a row for each job at a point, and a column for each metric."""

    @property
    def rows(self) -> Frame:
        """What is compared, with verdicts: ``rows.csv`` of the command."""

    @property
    def repeats(self) -> Frame:
        """Every metric of each repeat: ``repeats.csv`` of the command."""

    @property
    def differences(self) -> Frame:
        """Differences between series, with intervals and verdicts."""

    @property
    def drives(self) -> Frame:
        """What the drive of each point did."""

    @property
    def busy(self) -> Frame:
        """How long each channel and each unit of flash was busy, and with what."""

    @property
    def zone_history(self) -> Frame:
        """The first changes of the states of zones."""

    @property
    def latencies(self) -> Frame:
        """How the latencies of each job are distributed."""

    @property
    def throughput(self) -> Frame:
        """Operations of each job over time."""

    @property
    def erasures(self) -> Frame:
        """How many blocks of flash were erased how often."""

    @property
    def failures(self) -> Frame:
        """Jobs that ended early, and why."""

    @property
    def figures(self) -> list[Figure]:
        """All figures."""

    @property
    def traces(self) -> list[Trace]:
        """The traces of the points that were traced."""

    @property
    def passed(self) -> bool:
        """Whether everything that is judged passes."""

    @property
    def summary(self) -> dict[str, Any]:
        """What the rows come to."""

    def value(
        self,
        metric: str,
        *,
        series: str | None = None,
        x: object | None = None,
        job: str | None = None,
    ) -> float:
        """One metric of a job at a point. What there is only one of need not be said."""

    def figure(self, experiment: str | None = None) -> Figure:
        """The figure of an experiment; without ``experiment``, of the only one."""

    def matrix(self, experiment: str | None = None) -> dict[str, Any] | None:
        """The matrix of interference of an experiment that has one."""

    def to_json(self) -> str:
        """Rows and summary as the command writes them to ``rows.json``."""

    def __len__(self) -> int: ...

@final
class Figure:
    """A figure: panels with curves of ours, and published points on them."""

    @property
    def id(self) -> str:
        """The experiment's id."""

    @property
    def title(self) -> str:
        """The heading."""

    def to_svg(self) -> str:
        """The figure as the command writes it."""

    def to_frame(self) -> Frame:
        """What is drawn, a row for each point."""

    def to_dict(self) -> dict[str, Any]:
        """What is drawn, with axes."""

    def _repr_svg_(self) -> str: ...

@final
class Trace:
    """What every channel, die and command of a point did."""

    @property
    def title(self) -> str:
        """Which point it is, in words."""

    @property
    def dropped(self) -> str | None:
        """What was dropped since it was too much; ``None``: nothing."""

    @property
    def zone_history(self) -> Frame:
        """The changes of the states of zones."""

    @property
    def commands(self) -> Frame:
        """The commands and where their time went, each part in nanoseconds."""

    def perfetto(self) -> bytes:
        """The trace for ui.perfetto.dev."""

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the trace for ui.perfetto.dev to a file."""

    def summary(self) -> str:
        """The busiest resources and the slowest commands, in words."""

@final
class JobReport:
    """What a job file of fio, or a key-value workload, came to."""

    @property
    def logs(self) -> dict[str, str]:
        """The log files that jobs write: their text by name."""

    def to_json(self) -> str:
        """The results as the command writes them with ``--json``."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""

Operation: TypeAlias = Literal[
    "read",
    "write",
    "append",
    "write-zeroes",
    "compare",
    "verify",
    "flush",
    "open",
    "close",
    "finish",
    "reset",
    "offline",
    "report",
]

# One value for all, or a list or array (numpy, pandas, polars, pyarrow) of as many.
Column: TypeAlias = int | Sequence[int] | Any

@final
class Completion:
    @property
    def tag(self) -> int: ...
    @property
    def op(self) -> str: ...
    @property
    def lba(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def submitted(self) -> int: ...
    @property
    def at(self) -> int: ...
    @property
    def latency_ns(self) -> int: ...
    @property
    def status(self) -> int: ...
    @property
    def ok(self) -> bool: ...
    @property
    def status_text(self) -> str: ...
    @property
    def data(self) -> bytes | None: ...
    def check(self) -> None: ...

@final
class Drive:
    def __new__(
        cls,
        profile: ProfileSource,
        *,
        set: Settings | None = None,
        reset_policy: ResetPolicy | None = None,
        allocation: AllocationPolicy | ElementsPolicy | None = None,
    ) -> Drive: ...
    @staticmethod
    def restore(
        profile: ProfileSource,
        data: bytes,
        *,
        set: Settings | None = None,
        reset_policy: ResetPolicy | None = None,
        allocation: AllocationPolicy | ElementsPolicy | None = None,
    ) -> Drive: ...
    @property
    def now(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def totals(self) -> dict[str, Any]: ...
    def next_event(self) -> int | None: ...
    def submit(
        self,
        op: Operation,
        *,
        lba: int | None = None,
        zone: int | None = None,
        offset: int | None = None,
        nbytes: int | None = None,
        data: bytes | bytearray | memoryview | None = None,
        tag: int | None = None,
        at: int | None = None,
        nsid: int = 1,
    ) -> int: ...
    def advance(self, to: int | None = None) -> list[Completion]: ...
    def advance_frame(self, to: int | None = None) -> Frame: ...
    def execute(
        self,
        op: Operation,
        *,
        lba: int | None = None,
        zone: int | None = None,
        offset: int | None = None,
        nbytes: int | None = None,
        data: bytes | bytearray | memoryview | None = None,
        nsid: int = 1,
    ) -> Completion: ...
    def submit_many(
        self,
        op: Operation | Sequence[Operation] | Any,
        *,
        lba: Column | None = None,
        zone: Column | None = None,
        nbytes: Column | None = None,
        at: Column | None = None,
        depth: int | None = None,
        nsid: int = 1,
    ) -> tuple[int, int]: ...
    def fill(self, first: int, count: int) -> None: ...
    def power_cut(self, off_ns: int = 1_000_000, *, seed: int = 0) -> tuple[list[int], int]: ...
    def snapshot(self) -> bytes: ...
    def zones(self) -> Frame: ...
    def groups(self) -> Frame: ...
    def wear(self) -> Frame: ...
    def busy(self) -> Frame: ...

@final
class ResetView:
    @property
    def group(self) -> int: ...
    @property
    def now(self) -> int: ...
    @property
    def state(self) -> ResetState: ...
    @property
    def free(self) -> int: ...
    @property
    def invalid(self) -> int: ...
    @property
    def allocated(self) -> int: ...
    @property
    def pending(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def fills(self) -> int: ...
    @property
    def is_quiet(self) -> bool: ...
    @property
    def has_victim(self) -> bool: ...
    @property
    def erased_whole(self) -> int: ...
    @property
    def parts_of_zone(self) -> int: ...
    @property
    def row_ns(self) -> int: ...
    @property
    def rows_of_next(self) -> int | None: ...
    @property
    def units(self) -> int | None: ...
    @property
    def idle_units(self) -> int | None: ...

@final
class InvalidZone:
    @property
    def physical(self) -> int: ...
    @property
    def stale_blocks(self) -> int: ...
    @property
    def wear(self) -> int: ...

@final
class AllocationRequest:
    @property
    def zone(self) -> int: ...
    @property
    def group(self) -> int: ...
    @property
    def now(self) -> int: ...
    @property
    def luns(self) -> int | None: ...
    @property
    def per_lun(self) -> int | None: ...
    @property
    def is_relaxed(self) -> bool | None: ...

@final
class FreeZone:
    @property
    def physical(self) -> int: ...
    @property
    def wear(self) -> int: ...
    @property
    def stale_blocks(self) -> int: ...

@final
class FreeElement:
    @property
    def element(self) -> int: ...
    @property
    def lun(self) -> int: ...
    @property
    def wear(self) -> int: ...
    @property
    def is_stale(self) -> bool: ...

@final
class VictimZone:
    @property
    def zone(self) -> int: ...
    @property
    def valid(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def closed_as(self) -> int: ...
    @property
    def age(self) -> int: ...

@final
class Policies:
    def __new__(
        cls,
        *,
        reset: Callable[[], ResetPolicy] | None = None,
        allocation: Callable[[], AllocationPolicy | ElementsPolicy] | None = None,
        victims: Callable[[], VictimPolicy] | None = None,
        scheduler: Callable[[], Scheduler] | None = None,
    ) -> Policies: ...

# Commands, `(op, lba, nbytes)`, one or several, or a time to wait for.
Yielded: TypeAlias = tuple[Any, ...] | Sequence[tuple[Any, ...]] | int | None
Workload: TypeAlias = Generator[Yielded, list[Completion]]

def simulate(
    profile: ProfileSource,
    workloads: (
        Workload
        | Callable[[dict[str, int]], Workload]
        | Sequence[Workload | Callable[[dict[str, int]], Workload]]
    ),
    *,
    set: Settings | None = None,
    policies: Policies | None = None,
    ftl: bool = False,
    depth: int = 256,
    seed: int = 1,
    full_zones: int = 0,
    nsid: int | None = None,
) -> tuple[Frame, dict[str, Any]]: ...
def run_batch(pack: bytes, tasks: Sequence[int]) -> bytes:
    """Runs tasks of a sweep, which is given as bytes, and gives what they measured as bytes.

    What it gives depends on nothing but what it is given: it may run anywhere, and twice.
    """

@final
class Sweep:
    """A sweep that is ready to run: everything that its tasks depend on."""

    def __new__(
        cls,
        source: str | PathLike[str] | Mapping[str, Any],
        *,
        set: Settings | None = None,
        seed: int = 1,
        points: int | None = None,
        repeats: int | None = None,
        quick: bool = False,
    ) -> Sweep: ...
    @property
    def name(self) -> str:
        """Its name: that of its file."""

    @property
    def title(self) -> str:
        """Its title; may be empty."""

    @property
    def keys(self) -> list[str]:
        """Names of the keys that differ from point to point."""

    @property
    def digest(self) -> str:
        """A name of all that its results depend on."""

    def points(self) -> Frame:
        """Its points: a row for each, with the value of each key as it is written.

        If points are chosen while it runs, the first of them.
        """

    def __len__(self) -> int:
        """The number of its runs; if points are chosen while it runs, at most."""

    def to_bytes(self) -> bytes:
        """All of it, for workers elsewhere."""

    def open(
        self,
        path: str | PathLike[str] | None = None,
        *,
        force: bool = False,
        format: str | None = None,
    ) -> SweepStore:
        """Begins the sweep in a directory, or goes on with it if it was begun there.

        Without one, it has a directory of its own below ``results/NAME``, to the newest of
        which ``results/NAME/latest`` leads. With ``format="parquet"`` the data set is written
        so, too, beside CSV and JSON Lines.
        """

@final
class SweepStore:
    """The directory of a sweep: what is done of it, and never run again."""

    @property
    def counts(self) -> tuple[int, int, int]:
        """The number of tasks that are done, of those that failed, and of all.

        If points are chosen while it runs, of all at most.
        """

    def grow(self) -> bool:
        """Chooses the next points, when every task is done.

        ``False`` if there are enough, or if all of them were there from the beginning.
        """

    def to_bytes(self) -> bytes:
        """The sweep with the points that were chosen so far, for workers elsewhere."""

    def batches(self, workers: int) -> list[list[int]]:
        """Numbers of the tasks that are left, in parts for so many workers."""

    def append(self, lines: bytes) -> None:
        """Keeps what a worker gave. What was kept before stays."""

    def run(self, *, threads: int = 0, progress: Progress | None = None) -> None:
        """Runs what is left in threads of this process; 0: one for each core."""

    def close(self) -> None:
        """Lets go of the directory; what was done is kept there."""

    def finish(self) -> SweepResults:
        """Writes the data set, when every task is done."""

@final
class SweepResults:
    """What a sweep measured."""

    @property
    def path(self) -> Path:
        """The directory."""

    @property
    def files(self) -> list[Path]:
        """The files in it."""

    @property
    def frame(self) -> Frame:
        """The data set: a row for each job of each run, with every key and metric."""

    @property
    def standings(self) -> Frame:
        """What every point comes to, and whether it is on the Pareto front."""

    def __len__(self) -> int: ...
