"""The operations on one memory, as flows: whose it is was settled before."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal
from urllib.parse import quote

from tasklore.client.flows import Call, Flow, fetch, new_id
from tasklore.client.results import (
    Block,
    Changed,
    Forgotten,
    Item,
    Items,
    Keeping,
    Matches,
    Taken,
    Turn,
    WaitingRow,
    WaitingRows,
)

Scope = Literal["user", "agent", "run", "org"]


class MemoryFlows:
    """The operations on the memory of *name* in *scope*; every method returns a flow."""

    def __init__(self, name: str, scope: Scope) -> None:
        self._path = f"/v1/memory/{quote(name, safe='')}"
        self._scope = {} if scope == "user" else {"scope": scope}

    def hand_in(self, turns: Sequence[Turn]) -> Flow[int]:
        """Hand *turns* in, at most 100; return how many were taken."""
        body = {
            "turns": [turn.model_dump(mode="json", exclude_none=True) for turn in turns]
        }
        taken = yield from fetch(
            self._call("POST", "/turns", body=body, wait_s=20.0), Taken
        )
        return taken.taken

    def search(
        self,
        question: str,
        *,
        at: date | None = None,
        since: date | None = None,
        until: date | None = None,
        speaker: str | None = None,
        conversation_id: str | None = None,
        limit: int = 20,
    ) -> Flow[Matches]:
        """Return the matches for *question*, best first."""
        bounds = {
            "at": at,
            "since": since,
            "until": until,
            "speaker": speaker,
            "conversation_id": conversation_id,
        }
        return fetch(
            self._call("GET", "/search", {"q": question, "limit": limit, **bounds}),
            Matches,
        )

    def block(self, question: str = "", *, tokens: int | None = None) -> Flow[str]:
        """Return the text that a prompt is to quote."""
        found = yield from fetch(
            self._call("GET", "/block", {"q": question, "tokens": tokens}), Block
        )
        return found.text

    def items(
        self, *, category: str = "", state: str | None = None
    ) -> Flow[tuple[Item, ...]]:
        """Return the items of a category, all by default."""
        found = yield from fetch(
            self._call("GET", "/items", {"category": category, "state": state}), Items
        )
        return found.items

    def add(
        self,
        category: str,
        value: str,
        *,
        subject: str = "",
        since: date | None = None,
        until: date | None = None,
        key: str | None = None,
    ) -> Flow[Changed]:
        """Add an item; a *key* makes a repeat change nothing."""
        body = _body(
            category=category, value=value, subject=subject, since=since, until=until
        )
        return self._change("POST", "/items", body, key)

    def change(
        self,
        reference: str,
        *,
        value: str = "",
        subject: str = "",
        since: date | None = None,
        until: date | None = None,
        key: str | None = None,
    ) -> Flow[Changed]:
        """Give an item another `value`, `subject`, `since` or `until`; those left out stay."""
        body = _body(value=value, subject=subject, since=since, until=until)
        return self._change("PATCH", f"/items/{quote(reference, safe='')}", body, key)

    def delete(self, reference: str, *, key: str | None = None) -> Flow[Changed]:
        """Delete an item."""
        return self._change("DELETE", f"/items/{quote(reference, safe='')}", None, key)

    def undo(self, plan_id: str, *, key: str | None = None) -> Flow[Changed]:
        """Take a change back, by its plan."""
        return self._change("POST", "/undo", {"plan_id": plan_id}, key)

    def waiting(self) -> Flow[tuple[WaitingRow, ...]]:
        """Return the turns and facts that are not learned yet, or could not be."""
        found = yield from fetch(self._call("GET", "/waiting"), WaitingRows)
        return found.rows

    def settings(self) -> Flow[Keeping]:
        """Return whether turns are kept."""
        return fetch(self._call("GET", "/settings"), Keeping)

    def settle(self, *, is_on: bool = True, days: int | None = None) -> Flow[Keeping]:
        """Say whether turns are kept from now on, and for how many days."""
        body = {"is_on": is_on, "days": days}
        return fetch(
            self._call("PUT", "/settings", body=body, key=new_id(), wait_s=30.0),
            Keeping,
        )

    def forget(self) -> Flow[Forgotten]:
        """Remove all of it; that cannot be undone."""
        return fetch(
            self._call("DELETE", "", {"confirm": "forget"}, key=new_id(), wait_s=30.0),
            Forgotten,
        )

    def _change(
        self, method: str, path: str, body: Mapping[str, Any] | None, key: str | None
    ) -> Flow[Changed]:
        return fetch(
            self._call(method, path, body=body, key=key or new_id(), wait_s=30.0),
            Changed,
        )

    def _call(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        wait_s: float = 0.0,
    ) -> Call:
        given = {
            name: str(value)
            for name, value in (params or {}).items()
            if value is not None
        }
        return Call(
            method,
            path=f"{self._path}{path}",
            params={**self._scope, **given},
            body=body,
            key=key,
            wait_s=wait_s,
        )


def _body(**fields: Any) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, date) else value
        for name, value in fields.items()
        if value
    }
