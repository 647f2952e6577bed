"""The options that migration handlers share. All times are seconds, all sizes bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from headway.errors import UserError
from headway_plugins.migration.images import Images
from headway_plugins.migration.relocation import Way

#: What stands for a cluster's name in the path of images.
CLUSTER = "{cluster}"

Seconds = Annotated[float, Field(gt=0, le=7 * 86400)]


class LeaveOptions(BaseModel):
    """Of a handler that sends jobs through the queue."""

    model_config = ConfigDict(extra="forbid")
    leave: Seconds = Field(
        default=120.0,
        description="seconds that the batch system may take to put a job back into its queue",
    )


class ImageOptions(LeaveOptions):
    """Of a handler that keeps images."""

    directory: Path = Field(
        description=(
            "directory of the images, on a file system that all nodes share; each job has a directory with "
            "its name in it. With several clusters `{cluster}` stands for the name of each"
        ),
    )
    timeout: Seconds = Field(default=600.0, description="seconds after which an image must be complete")
    ask: Annotated[float, Field(gt=0, le=600)] = Field(
        default=0.5,
        description="seconds between two checks whether an image is complete",
    )
    complete: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$|^$")] = Field(
        default="complete",
        description=(
            "file that says that an image is complete; empty: an image is complete once nothing in it "
            "changes for `settle`"
        ),
    )
    settle: Seconds = Field(
        default=2.0,
        description="seconds without a change after which an image counts as complete, if no file says so",
    )
    keep: Annotated[float, Field(ge=0)] = Field(
        default=7 * 86400.0,
        description="seconds for which an image is kept after the end of its job",
    )
    quota: Annotated[int, Field(ge=0)] = Field(
        default=0, description="largest number of bytes of all images; 0: no limit"
    )
    spare: Annotated[int, Field(ge=0)] = Field(
        default=10**9,
        description="bytes that must stay free on the file system",
    )
    attribute: str = Field(
        default="",
        description="move only jobs with this word in their comment (Slurm: sbatch --comment=headway:WORD); "
        "empty: all jobs",
    )

    def for_cluster(self, cluster: str) -> Self:
        """The options for one of several clusters. Raises :class:`UserError` if all clusters would share the
        images."""
        path = str(self.directory)
        if CLUSTER not in path:
            raise UserError(
                f"directory: with several clusters, which may have jobs of the same id, expected {CLUSTER} "
                f"in the path, found {path}"
            )
        return self.model_copy(update={"directory": Path(path.replace(CLUSTER, cluster))})

    @field_validator("directory")
    @classmethod
    def _is_absolute(cls, value: Path) -> Path:
        if not value.is_absolute():
            raise ValueError("an absolute path, because jobs on other nodes use it")
        return value

    def images(self, method: str, words: tuple[str, ...] = ()) -> Images:
        """The directory, as these options have it. ``words``: files in it that are no part of an image."""
        return Images(
            self.directory, method=method, complete=self.complete, settle=self.settle, keep=self.keep,
            quota=self.quota, spare=self.spare, words=words,
        )  # fmt: skip

    def way(self, saves: str, *, signal: str = Way.signal, leaves_stopped: bool = False) -> Way:
        """How moves go that are given as much time as these options say. See :class:`Way`."""
        return Way(
            saves=saves, signal=signal, leaves_stopped=leaves_stopped, save_seconds=self.timeout,
            ask_seconds=self.ask, leave_seconds=self.leave,
        )  # fmt: skip
