"""JSON schemas that others wrote, compiled and applied in child processes: the one place where that is done.

A schema of 19 kB can compile to gigabytes, and one of a few parts can make a fault of each that holds the whole value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.runtime.children import ChildProcesses

_CHILD = "tasklore.supervisor.json_schema_child"
#: Children at once: they leave processors to who serves.
_AT_ONCE = 2
#: Seconds of processor time for one schema, thousands of times what those of tasks take.
_WORK_S = 2.0
#: Seconds for a child to start and to answer, on a machine that has other work.
_ANSWER_S = 15.0
#: Bytes of one answer, which has two texts of some hundred characters.
_LONGEST = 64 * 1024
_CURE = (
    "write a smaller schema with fewer and simpler patterns, none of which repeats a class such as "
    r"\w or \pL a hundred times"
)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a value does not fit: at *place*, "" for the whole value."""

    place: str
    fault: str


class JsonSchemas:
    """Checks schemas, and values against them, by draft 2020-12; those of one caller one after another."""

    def __init__(self) -> None:
        self._children = ChildProcesses(_CHILD, at_once=_AT_ONCE, longest=_LONGEST)

    async def demand(self, schema: Mapping[str, Any], *, whose: str | None) -> None:
        """Return when *schema* can be checked.

        Raises:
            InvalidInput: it is none, refers elsewhere, or takes too much; the message says why and names the cure.
        """
        await self._ask({"schema": schema}, whose)

    async def find_misfit(
        self, schema: Mapping[str, Any], value: JsonValue, *, whose: str | None
    ) -> Misfit | None:
        """Return the first reason why *value* does not fit *schema*, None when it does.

        Raises:
            InvalidInput: as `demand` has it.
        """
        answer = await self._ask({"schema": schema, "value": value}, whose)
        return Misfit(answer["place"], answer["fault"]) if answer else None

    async def close(self) -> None:
        """End the children that wait for work."""
        await self._children.close()

    async def _ask(self, job: Mapping[str, Any], whose: str | None) -> dict[str, str]:
        try:
            answer = await self._answer({**job, "seconds": _WORK_S}, whose)
        except TimeoutError as error:
            raise InvalidInput(
                f"it takes more than {_WORK_S:g} s or all memory to check; {_CURE}"
            ) from error
        if "refused" in answer:
            cure = f"; {_CURE}" if '"regex"' in answer["refused"] else ""
            raise InvalidInput(
                f"it cannot be checked by draft 2020-12: {answer['refused']}{cure}"
            )
        return answer

    async def _answer(
        self, job: Mapping[str, Any], whose: str | None
    ) -> dict[str, str]:
        return await self._children.ask(job, _ANSWER_S, whose=whose)
