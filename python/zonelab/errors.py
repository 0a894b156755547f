"""What can go wrong: exceptions with the texts and the exit codes of the command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from zonelab._native import Completion


class Problem(NamedTuple):
    """One thing that is wrong with an input."""

    file: str
    """The file, or what was given in its place."""
    line: int | None
    """The line, from 1; ``None`` if it is the file as a whole, or a setting."""
    key: str
    """Path of the key, ``media.suspend.erase``; empty if no key is concerned."""
    what: str
    """What is wrong."""
    valid: str
    """What would be right; empty if there is nothing to add."""


class ZonelabError(Exception):
    """Anything that zonelab itself refuses or fails at."""

    exit_code: int = 70
    """With what the command would have ended."""


class UsageError(ZonelabError, ValueError):
    """A word that stands for nothing, or an argument that makes no sense."""

    exit_code = 2


class InvalidInput(ZonelabError, ValueError):
    """A profile, an experiment or another input is wrong."""

    exit_code = 3

    problems: tuple[Problem, ...]
    """Everything that is wrong with it, as far as it is known one by one."""

    def __init__(
        self,
        message: str,
        problems: Iterable[tuple[str, int | None, str, str, str]] = (),
    ) -> None:
        """The text, and the problems one by one."""
        super().__init__(message)
        self.problems = tuple(Problem(*problem) for problem in problems)


class EnvironmentFailure(ZonelabError, OSError):
    """The environment lacks something: a place to write to, mostly."""

    exit_code = 4


class DeviceError(ZonelabError):
    """A device failed an operation, or does not answer."""

    exit_code = 5


class CommandFailed(DeviceError):
    """A command completed with another status than success."""

    status: int
    """The NVMe status: code type in bits 8 to 10, code below."""
    completion: Completion
    """The completion."""

    def __init__(self, message: str, status: int, completion: Completion) -> None:
        """The text, the status, and the completion that has it."""
        super().__init__(message)
        self.status = status
        self.completion = completion


class PolicyError(ZonelabError, ValueError):
    """A policy has nothing to decide in a drive, or gave an answer that makes no sense.

    What a policy itself raises is raised as it is, and is none of these.
    """

    exit_code = 2
