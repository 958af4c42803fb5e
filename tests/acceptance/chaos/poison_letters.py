"""What is sent by the poisoner: to every subject that the product reads, with spoiled bodies, headers and names."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from tasklore.runtime.servers.embedded import MAX_PAYLOAD
from tests.acceptance.chaos.poison_bodies import Json, Spoiler
from tests.acceptance.chaos.poison_oddities import (
    HEADER_LINES,
    ODD_TOKENS,
    SENTENCES,
    VERSION_LINES,
)

#: Who asked, for every task that the poisoner makes.
SENDER = "Poisoner"
SUPERVISOR = b"SupervisorAgent"

#: A letter is a task, a request to be answered, or one that nobody answers.
Kind = Literal["task", "request", "word"]


@dataclass(frozen=True, slots=True)
class Letter:
    """One message as it goes out."""

    kind: Kind
    subject: bytes
    body: bytes
    headers: bytes

    @property
    def has_headers_of_text(self) -> bool:
        """Whether its headers are UTF-8, as NATS has it; no client library sends others."""
        try:
            self.headers.decode()
        except UnicodeDecodeError:
            return False
        return True


class Poisoner:
    """Writes letters; the same *seed* writes the same ones, but for ids and times."""

    def __init__(self, seed: int) -> None:
        self._spoiler = Spoiler(seed)
        self._random = self._spoiler.random
        #: How often each is drawn, in hundredths.
        self._sorts: tuple[tuple[Callable[[], Letter], int], ...] = (
            (self._task, 38),
            (self._task_of_odd_name, 6),
            (self._request, 22),
            (self._report, 11),
            (self._cancellation, 8),
            (self._card, 7),
            (self._presence, 2),
            (self._progress, 2),
            (self._comparison, 4),
        )

    def letter(self) -> Letter:
        """Return the next letter."""
        (sort,) = self._random.choices(
            [sort for sort, _ in self._sorts], [often for _, often in self._sorts]
        )
        letter = sort()
        # More than that, and the server hangs up on the poisoner.
        fits = len(letter.headers) + len(letter.body) <= MAX_PAYLOAD
        return letter if fits else replace(letter, headers=b"")

    def heavy(self) -> Letter:
        """Return a task of almost a megabyte."""
        agent, name, parameters = self._random.choice(_QUESTIONS)
        body = self._spoiler.large(assignment(agent, name, parameters))
        return Letter("task", f"tasks.{agent}.{name}".encode(), body, b"")

    def _task(self) -> Letter:
        agent, name, parameters = self._random.choice(_QUESTIONS)
        body = self._spoiler.spoiled(assignment(agent, name, parameters))
        return Letter("task", f"tasks.{agent}.{name}".encode(), body, self._headers())

    def _task_of_odd_name(self) -> Letter:
        agent, name, parameters = self._random.choice(_QUESTIONS)
        body = self._spoiler.spoiled(assignment(agent, name, parameters))
        return Letter(
            "task",
            b"tasks.%b.%b" % (agent.encode(), self._token()),
            body,
            self._headers(),
        )

    def _request(self) -> Letter:
        # A wait of ten minutes is nobody's fault, and would hold up the profile.
        request = {
            "text": self._random.choice(SENTENCES),
            "conversation_id": f"c-{self._random.randrange(40)}",
        }
        request |= {
            "schema_version": 1,
            "wait_ms": 400,
            "memory": "use",
            "user_id": "mallory",
            "request_id": _id(),
        }
        body = self._spoiler.spoiled(request)
        return Letter("request", b"requests." + SUPERVISOR, body, self._headers())

    def _report(self) -> Letter:
        task_id = _id()
        report = {
            "schema_version": 1,
            "task_id": task_id,
            "generation": 1,
            "agent_id": "GullibleAgent",
            "supervisor_id": SUPERVISOR.decode(),
            "task_name": "swallow",
            "status": "completed",
            "result": {"said": 1},
            "error": None,
            "memory": {"outcome": "miss", "key": None, "age_ms": None},
            "attempt": 1,
            "fence": self._random.choice(("ledger", "none", "other", "new")),
            "worker_id": "w",
            "finished_at": datetime.now(UTC).isoformat(),
        }
        tail = self._token() if self._random.random() < 0.2 else b"1"
        subject = b"reports.%b.%b.%b" % (SUPERVISOR, task_id.encode(), tail)
        return Letter("word", subject, self._spoiler.spoiled(report), self._headers())

    def _comparison(self) -> Letter:
        """Ask for a comparison, whose body is the subject of a report, of what may be none."""
        token = self._token() if self._random.random() < 0.5 else b"1"
        where = b"reports.%b.%b.%b" % (SENDER.encode(), _id().encode(), token)
        body = (
            where
            if self._random.random() < 0.7
            else self._spoiler.spoiled({"subject": where.decode("latin-1")})
        )
        return Letter(
            "word",
            b"reports.~compare.%b.%b" % (_id().encode(), _id().encode()),
            body,
            self._headers(),
        )

    def _cancellation(self) -> Letter:
        task_id = _id()
        body = self._spoiler.spoiled(
            {"schema_version": 1, "task_id": task_id, "reason": "no longer wanted"}
        )
        token = self._token() if self._random.random() < 0.3 else task_id.encode()
        return Letter("word", b"cancel." + token, body, self._headers())

    def _card(self) -> Letter:
        """Put a card under one of a few names: how many agents there are is no matter of poison."""
        agent = self._random.choice(("OddAgent", "EvenAgent", "BentAgent"))
        field = {
            "type": "number",
            "cues": ["(a+)+$", "["],
            "unit": "USD",
            "aliases": ["x", "x"],
            "enum": [1, "a"],
        }
        task = {
            "name": "bend",
            "version": 1,
            "description": "Bend a number.",
            "parameters": {
                "type": "object",
                "properties": {"x": field, "y": {"$ref": "#/$defs/y"}},
                "required": ["x"],
            },
            "result": None,
            "remember": "shared",
            "max_attempts": 1,
            "deadline_s": 1.0,
            "keywords": ["bend"],
            "examples": ["bend 5"],
        }
        card = {
            "schema_version": 1,
            "agent_id": agent,
            "version": self._random.randrange(1, 1000),
            "digest": "d",
        }
        card |= {"description": "Bends.", "keywords": ["bend"], "tasks": [task]}
        token = self._token() if self._random.random() < 0.2 else agent.encode()
        return Letter(
            "word", b"$KV.agents." + token, self._spoiler.spoiled(card), self._headers()
        )

    def _presence(self) -> Letter:
        presence = {
            "schema_version": 1,
            "worker_id": "w-1",
            "agent_id": "GullibleAgent",
            "version": 1,
            "digest": "d",
        }
        presence |= {
            "slots": 1,
            "http": None,
            "started_at": datetime.now(UTC).isoformat(),
        }
        token = self._token() if self._random.random() < 0.5 else b"GullibleAgent.w-1"
        return Letter(
            "word",
            b"$KV.workers." + token,
            self._spoiler.spoiled(presence),
            self._headers(),
        )

    def _progress(self) -> Letter:
        body = self._spoiler.spoiled(
            {
                "task_id": _id(),
                "agent_id": "A",
                "fraction": 0.5,
                "at": "2026-01-01T00:00:00Z",
            }
        )
        return Letter(
            "word", b"progress.%b.%b" % (SUPERVISOR, self._token()), body, b""
        )

    def _token(self) -> bytes:
        return self._random.choice(ODD_TOKENS)

    def _headers(self) -> bytes:
        """Return a block of odd headers, more often none."""
        if self._random.random() < 0.6:
            return b""
        lines = self._random.choices(HEADER_LINES, k=self._random.randint(0, 3))
        end = b"\r\n\r\n" if self._random.random() < 0.95 else b"\r\n"
        return b"\r\n".join([self._random.choice(VERSION_LINES), *lines]) + end


def assignment(agent: str, name: str, parameters: Json) -> Json:
    """Return a valid assignment, its task id first: what is cut off there has lost its sender too."""
    return {
        "task_id": _id(),
        "schema_version": 1,
        "agent_id": agent,
        "supervisor_id": SENDER,
        "task": {"name": name, "parameters": parameters},
        "created_at": datetime.now(UTC).isoformat(),
        "deadline": None,
        "max_attempts": 2,
        "memory": "use",
        "user_id": "mallory",
    }


def _id() -> str:
    return str(uuid.uuid4())


_MORSEL = {
    "amount": "50k",
    "amounts": [1, "2,000", {"value": 3, "unit": "km"}],
    "price": "$4.50",
    "text": "a text",
    "number": 7,
    "ratio": 0.5,
    "exact": "1.25",
    "flag": False,
    "when": "2026-11-21T10:00:00Z",
    "taste": "sour",
    "parts": [{"name": "leg", "weight": 1.5}],
}

_QUESTIONS: tuple[tuple[str, str, Json], ...] = (
    ("GullibleAgent", "swallow", _MORSEL),
    ("GullibleAgent", "taste", _MORSEL),
    ("GullibleAgent", "nonsense", _MORSEL),
    (
        "BudgetTrackerAgent",
        "analyze_budget",
        {"budget_limit": 50_000, "spent": "42k", "history": [5000, "7,000"]},
    ),
)
