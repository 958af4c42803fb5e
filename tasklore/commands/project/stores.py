"""The memory of projects, open; the project of a command, and times as they are typed."""

import contextlib
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from tasklore.commands.places import open_redis
from tasklore.commands.render.durations import parse_span
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.projects.records import Record, kind_of_id

#: The project of a command without `--project`.
PROJECT_VARIABLE = "TASKLORE_PROJECT_ID"

#: Seconds for one look: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0
#: Projects that an error names.
_MOST_LISTED = 8


@contextlib.asynccontextmanager
async def open_projects() -> AsyncIterator[ProjectMemory]:
    """Open the project memory of the system that runs here.

    Raises:
        Unreachable: there is none, or its Redis does not answer.
    """
    async with open_redis("tasklore-project", 2 * _DEADLINE_S) as client:
        yield ProjectMemory(client, deadline_s=_DEADLINE_S)


async def choose_project(
    memory: ProjectMemory, project: str | None, *, may_be_new: bool = False
) -> str:
    """Return *project*, else the one in the environment, else the only one there is.

    Never the current folder's: a record in a wrong project can never be taken back.

    Raises:
        InvalidInput: it is no name, or there is no such project (unless it *may_be_new*), or there are several.
    """
    name, source = (
        (project, "--project")
        if project is not None
        else (os.environ.get(PROJECT_VARIABLE), PROJECT_VARIABLE)
    )
    if name:
        checked_name(name, source)
        if may_be_new:
            return name
    known = [info.project_id for info in await memory.projects()]
    if name in known or (not name and len(known) == 1):
        return name or known[0]
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    listed = f"there {'is' if len(known) == 1 else 'are'} {', '.join(known[:_MOST_LISTED])}{more}"
    if not known:
        listed = "no project remembers anything yet: `tasklore project decide TEXT --project ID` begins one"
    if name:
        raise InvalidInput(f"{source} {name!r} remembers nothing; {listed}")
    raise InvalidInput(
        f"say which project, with --project ID or {PROJECT_VARIABLE}; {listed}"
    )


async def find_record(memory: ProjectMemory, project: str, record_id: str) -> Record:
    """Return a record.

    Raises:
        InvalidInput: *record_id* is no id, or there is no such record.
    """
    kind_of_id(record_id)
    record = await memory.read(project, record_id)
    if record is None:
        raise InvalidInput(
            f"project {project!r} has no record {record_id!r}; `tasklore project search` shows what there is"
        )
    return record


def time_of(text: str | None, option: str, now: datetime) -> int | None:
    """Return the time *text* in ms since 1970: so long before *now* (2h, 7d), or a time, UTC without zone.

    Raises:
        InvalidInput: it is neither.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            moment = now - parse_span(text, option)
        except OverflowError:
            return 0
        except InvalidInput as error:
            raise InvalidInput(
                f"{error}, or a time such as 2026-11-21T10:00:00Z"
            ) from error
    at = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, int(at.timestamp() * 1000))
