"""The condition and the parameters of a phase, with the entries that they refer to read out of the session."""

from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import MOST_ITEMS, Phase
from tasklore.contracts.session_keys import EntryKey, read_key
from tasklore.supervisor.pipelines.declaration.conditions import Condition
from tasklore.supervisor.pipelines.declaration.graph import (
    keys_read,
    mentions_of,
    result_keys,
)
from tasklore.supervisor.pipelines.declaration.references import (
    Reference,
    kind_of,
    references_in,
    resolve,
)
from tasklore.supervisor.pipelines.live import DriverDependencies, LiveRun

#: Phases that have to run again, as entries of theirs were written and are gone; each with the reason.
Gone = dict[str, str]


class PhaseReader:
    """Reads for *phase* under the name *reader*, so that a repeat counts no use twice."""

    def __init__(
        self, parts: DriverDependencies, live: LiveRun, phase: Phase, reader: str
    ) -> None:
        self._parts = parts
        self._live = live
        self._phase = phase
        self._reader = reader
        self._values: dict[str, JsonValue] = {}
        self._standards: JsonValue = []
        self._item: JsonValue = None
        self._index = 0

    async def condition(self) -> bool | Gone:
        """Return whether the phase's `when` holds, or the phases that have to run again before that is known.

        Raises:
            InvalidInput: it compares unlike kinds, or a reference leads nowhere.
            MemoryUnavailable: the store did not answer.
        """
        if self._phase.when is None:
            return True
        condition = Condition.parse(self._phase.when)
        gone = await self._load(condition.references)
        return gone or condition.holds(self._look_up)

    async def parameters(self) -> dict[str, JsonValue] | list[Gone]:
        """Return the phase's parameters with every reference replaced, or, in a list, the phases to run again first.

        Raises:
            InvalidInput: a reference leads nowhere.
            MemoryUnavailable: the store did not answer.
        """
        until = (
            Condition.parse(self._phase.repeat_until).references
            if self._phase.repeat_until is not None
            else ()
        )
        references = (
            *references_in([self._phase.parameters, self._phase.for_each or ""]),
            *until,
        )
        gone = await self._load(references) | await self._find_lost_reads()
        if gone:
            return [gone]
        if any(one.kind == "standards" for one in references):
            found = await self._parts.projects.standards(
                self._live.record.project, self._phase.standards
            )
            self._standards = [
                {"id": one.record_id, "text": one.text, "tags": list(one.tags)}
                for one in found
            ]
        return {} if self._phase.has_parts else self._fill()

    def items(self) -> list[JsonValue]:
        """Return the items of the phase, once its `parameters` are read.

        Raises:
            InvalidInput: its `for_each` leads to no list, or to too long a one.
        """
        found = resolve(self._phase.for_each, self._look_up)
        if not isinstance(found, list):
            raise InvalidInput(
                f"for_each {self._phase.for_each} is {kind_of(found)}; refer to a list"
            )
        if len(found) > MOST_ITEMS:
            raise InvalidInput(
                f"for_each {self._phase.for_each} has {len(found):,} items; keep to {MOST_ITEMS:,}"
            )
        return found

    def parameters_of(self, item: JsonValue, index: int) -> dict[str, JsonValue]:
        """Return the parameters for *item*, or after what a round returned; it is number *index* from 0.

        Raises:
            InvalidInput: a reference leads nowhere in it.
        """
        self._item = item
        self._index = index
        return self._fill()

    def is_reached(self, last: JsonValue) -> bool:
        """Return whether the phase's `repeat_until` holds once a round returned *last*.

        Raises:
            InvalidInput: it compares unlike kinds, or a reference leads nowhere.
        """
        self._item = last
        return Condition.parse(self._phase.repeat_until or "true").holds(self._look_up)

    def _fill(self) -> dict[str, JsonValue]:
        return cast(
            "dict[str, JsonValue]", resolve(self._phase.parameters, self._look_up)
        )

    def _look_up(self, reference: Reference) -> JsonValue:
        if reference.kind == "standards":
            return self._standards
        if reference.kind in ("item", "last"):
            return self._item
        if reference.kind == "index":
            return self._index
        if reference.kind == "input":
            return self._live.record.inputs.get(reference.name)
        return self._values.get(reference.name)

    async def _load(self, references: Iterable[Reference]) -> Gone:
        """Read the entries of *references*; return which phases have lost theirs."""
        wanted: dict[str, bool] = {}
        for one in references:
            if one.kind == "entry" and one.name not in self._values:
                wanted[one.name] = wanted.get(one.name, True) and one.optional
        asked = [
            key
            for key, is_optional in wanted.items()
            if self._demand(read_key(key), is_optional)
        ]
        if not asked:
            return {}
        found = await self._parts.cache.get_many(
            self._live.session_id, asked, reader=self._reader
        )
        gone: Gone = {}
        for key, entry in zip(asked, found, strict=True):
            if entry is not None:
                self._values[key] = entry.value
            elif self._has_lost(read_key(key), is_optional=wanted[key]):
                gone[self._live.owner(read_key(key).phase)] = (
                    f"its entry {key!r} is gone"
                )
        self._parts.meter.count_session_hits(len(found) - found.count(None))
        return gone

    async def _find_lost_reads(self) -> Gone:
        """Return which phases have lost entries that the phase only declares to read: its agent will ask for them."""
        if not self._phase.reads:
            return {}
        loaded = {
            one.reference.name
            for one in mentions_of(self._phase)[0]
            if one.place[0] != "reads"
        }
        declared = {
            key: optional
            for key, optional in keys_read(self._phase).items()
            if key not in loaded
        }
        asked = [
            key
            for key, is_optional in declared.items()
            if self._demand(read_key(key), is_optional)
        ]
        if not asked:
            return {}
        there = {
            entry.key
            for entry in await self._parts.cache.entries(self._live.session_id)
        }
        gone: Gone = {}
        for key in asked:
            parts = read_key(key)
            owner = self._live.owner(parts.phase)
            if str(parts._replace(phase=owner)) not in there and self._has_lost(
                parts, is_optional=declared[key]
            ):
                gone[owner] = f"its entry {key!r} is gone"
        return gone

    def _demand(self, key: EntryKey, is_optional: bool) -> bool:
        """Return whether the entry *key* can be there at all: not when its phase was left out, has failed or is late.

        Raises:
            InvalidInput: it cannot, and the phase needs it.
        """
        owner = self._live.owner(key.phase)
        state = self._live.phases.get(owner)
        if state is not None and not self._live.is_absent(owner):
            return True
        if is_optional:
            return False
        reasons = {"skipped": "was left out", "failed": "has failed"}
        why = (
            f"phase {owner!r} {reasons.get(state.status, 'is late')}"
            if state
            else f"there is no phase {owner!r}"
        )
        if state and state.status == "skipped":
            why += f" ({state.why})"
        raise InvalidInput(
            f"phase {self._phase.name!r} reads {str(key)!r}, but {why}; write '{key}?' to read null then, or give "
            f"{self._phase.name!r} the same condition"
        )

    def _has_lost(self, key: EntryKey, *, is_optional: bool) -> bool:
        """Return whether an entry that is not there was: an optional one need never have been written."""
        owner = self._live.by_name.get(self._live.owner(key.phase))
        declared = (
            owner is not None
            and key.identifier is None
            and key.data_type in owner.writes
        )
        return declared or not is_optional


async def find_lost_results(parts: DriverDependencies, live: LiveRun) -> Gone:
    """Return which phases have lost entries that make up the result of the run.

    Raises:
        MemoryUnavailable: the store did not answer.
    """
    wanted: dict[str, tuple[str, str]] = {}
    for text in result_keys(live.record.pipeline, live.graph):
        key = read_key(text)
        owner = live.owner(key.phase)
        declared = (
            key.identifier is None and key.data_type in live.by_name[owner].writes
        )
        if declared and live.phases[owner].status == "done":
            wanted[str(key._replace(phase=owner))] = owner, text
    there = (
        {entry.key for entry in await parts.cache.entries(live.session_id)}
        if wanted
        else set()
    )
    return {
        owner: f"its entry {text!r} is gone"
        for key, (owner, text) in wanted.items()
        if key not in there
    }
