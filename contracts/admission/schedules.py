"""When something begins again and again: by a cron expression in a time zone, or every so many seconds."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from tasklore.contracts.message_parts import Part, is_none
from tasklore.contracts.words import reads_unknown_as_other, writes_only_known

MissedTicks = Literal["skip", "once", "all", "other"]


class Timing(Part):
    """The ticks of a schedule: one of `cron`, in `time_zone` (IANA), `every_s` seconds, or once `at` a time.

    `missed` says which of the ticks that passed while no supervisor ran are made up for: none (`skip`), the last one
    (`once`) or `all`. An unknown word is treated as `skip`.
    """

    cron: str | None = Field(default=None, exclude_if=is_none)
    every_s: int | None = Field(default=None, exclude_if=is_none)
    at: AwareDatetime | None = Field(default=None, exclude_if=is_none)
    time_zone: str = "UTC"
    missed: Annotated[
        MissedTicks, reads_unknown_as_other(MissedTicks), writes_only_known
    ] = "once"
