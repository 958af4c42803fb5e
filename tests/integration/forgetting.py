"""A pair of servers in which users have left something in every store and stream."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.agent_messages import agent_message
from tasklore.contracts.conversations import Utterance
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import (
    ChatTurn,
    DeadLetter,
    ErrorNote,
    ExtractedFacts,
    Fact,
    TaskAssignment,
    TaskCall,
)
from tasklore.contracts.observations import Action, AgentTarget, Observation
from tasklore.contracts.run_messages import RunMessage
from tasklore.memory import keys
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import Reply, RequestRecords, place_of
from tasklore.memory.ledger.runs import Finish, RunName
from tasklore.memory.ledger.task_rows import TaskRow, row_of
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.memory.run_messages.keys import owner_of_run
from tasklore.memory.run_messages.store import RunMessages
from tasklore.memory.schedules.store import Schedule, ScheduleState, ScheduleStore
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.stores import STORES
from tasklore.memory.tombstones.store import Tombstones
from tasklore.memory.webhooks.outbox import Callback, Webhook, WebhookOutbox
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.workers.forgetting.erasure import Forgotten, UserStore, forget_user
from tasklore.workers.forgetting.server_files import rewrite_redis, rewrite_streams
from tasklore.workers.forgetting.stores import all_stores

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
AT_MS = int(NOW.timestamp() * 1000)
#: Seconds that any step may take on a busy machine; no test waits for it to pass.
PATIENCE_S = 60.0
FOOD = "resource_user_food_prefs"


def secret_of(user: str) -> str:
    """Return the words that only *user* says: letters that JSON escapes, and such that it does not."""
    return f"zebra-{user}-crêpe"


@dataclass
class Town:
    """A pair of servers in which people have left something everywhere."""

    servers: EmbeddedServers
    client: Client
    link: Link
    outbox: Outbox
    redis: Redis

    def __post_init__(self) -> None:
        self.turns = PersonalQueue(self.redis, "turns", deadline_s=PATIENCE_S)
        self.facts = PersonalQueue(self.redis, "facts", deadline_s=PATIENCE_S)
        self.ledger = Ledger(self.redis, deadline_s=PATIENCE_S)
        self.conversations = Conversations(self.redis, deadline_s=PATIENCE_S)
        self.documents = DocumentStore(self.redis, Kinds.load(), deadline_s=PATIENCE_S)
        self.memory = LongTermMemory(self.redis, budget_s=PATIENCE_S)

    def stores(self) -> tuple[UserStore, ...]:
        nowhere = self.servers.nats.data_dir / "evidence"
        return all_stores(
            self.link,
            self.redis,
            self.outbox,
            self.documents,
            nowhere,
            ledger=self.ledger,
            deadline_s=PATIENCE_S,
        )

    async def forget(self, user: str) -> Forgotten:
        return await forget_user(
            user,
            self.stores(),
            (partial(rewrite_redis, self.redis), partial(rewrite_streams, self.link)),
        )

    async def publish(self, subject: str, body: bytes, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = json.loads(
            (
                await self.client.request(
                    subject, body, timeout=PATIENCE_S, headers=named or None
                )
            ).data
        )
        assert "error" not in answer, answer
        return int(answer["seq"])

    async def stored(self, stream: str) -> int:
        info = json.loads(
            (
                await self.client.request(
                    f"$JS.API.STREAM.INFO.{stream}", timeout=PATIENCE_S
                )
            ).data
        )
        return int(info["state"]["messages"])

    def assignment(self, user: str, name: str) -> bytes:
        assignment = TaskAssignment(
            task_id=f"{user}-{name}",
            agent_id="Probe",
            supervisor_id="S",
            task=TaskCall(name="ask", parameters={"text": secret_of(user)}),
            created_at=NOW,
            user_id=user,
        )
        return assignment.model_dump_json(exclude_none=True).encode()

    async def talk(self, user: str) -> None:
        secret = secret_of(user)
        turn = ChatTurn(
            turn_id=f"{user}-turn",
            conversation_id=f"c-{user}",
            user_id=user,
            speaker="person",
            text=secret,
            at=NOW,
        )
        said = turn.model_dump_json(exclude_none=True).encode()
        fact = Fact(fact_id=f"{user}-fact", text=secret, evidence=secret)
        found = ExtractedFacts(
            turn_id=turn.turn_id,
            conversation_id=turn.conversation_id,
            user_id=user,
            facts=(fact,),
            at=NOW,
        )
        learned = found.model_dump_json(exclude_none=True).encode()
        await self.publish(subjects.turns(user), said)
        await self.publish(subjects.facts(user), learned)
        assert await self.turns.append(user, [(turn.turn_id, said)]) == 1
        assert await self.facts.append(user, [(fact.fact_id, learned)]) == 1
        assert await self.conversations.append(
            turn.conversation_id, said, turn.turn_id, user_id=user
        )
        await self.tell(user, turn.conversation_id)
        body: dict[str, Any] = {
            "food": {"likes": [secret]},
            "_metadata": {"resource_id": FOOD},
        }
        await self.documents.import_document(user, json.dumps(body).encode(), at=NOW)

    async def tell(self, user: str, conversation_id: str) -> None:
        inbox = Inbox(self.redis, PATIENCE_S, window=1)
        secret = secret_of(user)
        heard = [
            Utterance(
                message_id=f"{user}-{number}",
                speaker="Bob",
                message=secret,
                time=number,
            )
            for number in range(3)
        ]
        await inbox.take(conversation_id, "t1", heard[:2], user_id=user)
        did = Action(action="text", target=AgentTarget(agent="Bob"), utterance=secret)
        await inbox.settle(
            conversation_id,
            "t1",
            heard[0],
            observation=Observation(time=1, did=did),
            user_id=user,
        )
        await inbox.take(conversation_id, "t2", user_id=user)
        assert await inbox.summarise(conversation_id, 2, secret)
        assert await inbox.post(conversation_id, heard[2], user_id=user)
        # And on its way: said by them to somebody else's agent, and by nobody known to theirs.
        for to, speaks_for in (("c-of-the-world", user), (conversation_id, None)):
            said = agent_message(
                message_id=user,
                conversation_id=to,
                sender="Bob",
                message=secret,
                time=1,
                user_id=speaks_for,
            )
            await self.publish(
                subjects.messages(to, "Bob"), said.model_dump_json().encode()
            )

    async def work(self, user: str) -> None:
        waiting, later, dead = (
            self.assignment(user, name) for name in ("waiting", "later", "dead")
        )
        await self.publish("tasks.Probe.ask", waiting)
        await self.ledger.accept(
            f"{user}-waiting", 1, waiting, row=self.row(user, "waiting")
        )
        await self.publish(
            f"schedules.tasks.{user}-later.1",
            later,
            Nats_Schedule="@at 2099-01-01T00:00:00Z",
            Nats_Schedule_Target="due.tasks.Probe.ask",
        )
        await self.publish("tasks.Probe.ask", self.assignment(user, "running"))
        await self.ledger.begin(f"{user}-running", 1, "w1", AT_MS, 600_000)
        seen = RunMessage(kind="prompt", at_ms=AT_MS, text=secret_of(user))
        assert await RunMessages(self.redis, deadline_s=PATIENCE_S).append(
            RunName(f"{user}-running", 1, "w1"),
            "Probe",
            owner_of_run(user, None),
            [seen.model_dump_json().encode()],
        )
        for name, status in (("done", "completed"), ("dead", "failed")):
            report = self.report(user, name)
            finish = Finish(
                f"{user}-{name}",
                generation=1,
                status=status,
                report=report,
                user=user_token(user),
                row=self.row(user, name)._replace(state=status, ended_ms=AT_MS),
            )
            assert await self.ledger.finish_many([finish]) == [None]
            await self.publish(subjects.report("S", f"{user}-{name}", 1), report)
        letter = DeadLetter(
            reason="attempts",
            error=ErrorNote(type="E", message="m"),
            subject="tasks.Probe.ask",
            sequence=1,
            attempts=5,
            body=base64.b64encode(dead).decode(),
            body_bytes=len(dead),
            body_digest="d",
            task_id=f"{user}-dead",
            died_at=NOW,
        )
        await self.publish("dead.tasks.Probe.ask", letter.model_dump_json().encode())

    def row(self, user: str, name: str) -> TaskRow:
        assignment = TaskAssignment.model_validate_json(self.assignment(user, name))
        return row_of(assignment, 1, assignment.agent_id)

    def report(self, user: str, name: str) -> bytes:
        return json.dumps(
            {"task_id": f"{user}-{name}", "result": secret_of(user)}, ensure_ascii=False
        ).encode()

    async def ask(self, user: str, question: str, *, of_user: bool = False) -> str:
        key = keys.ltm(
            "Probe", "1.1", f"ask:{question}", user_token(user) if of_user else None
        )
        await self.memory.remember(
            key,
            json.dumps(secret_of(user)).encode(),
            computed_ms=5,
            ttl=timedelta(hours=1),
            now_ms=AT_MS,
            user_token=user_token(user),
        )
        return key

    async def leave_in_others(self, user: str) -> set[str]:
        """Leave words in each kind of key by a user's token in which nothing else does; return the stores of these."""
        token, secret = user_token(user), secret_of(user)
        left = set()
        for declared in (key for store in STORES for key in store.keys):
            key = declared.names[0].replace("{token}", f"{{{token}}}")
            kind = f"{key.partition('{')[0]}{{{token}}}*"
            if "{token}" not in declared.names[0] or await self.redis.keys(kind):
                continue
            put: dict[str, tuple[str | int, ...]] = {
                "hash": ("HSET", key, "x", secret),
                "list": ("RPUSH", key, secret),
                "set": ("SADD", key, secret),
                "sorted set": ("ZADD", key, 1, secret),
                "string": ("SET", key, secret),
            }
            await self.redis.execute_command(*put[declared.type.split(", ")[0]])
            left |= set(declared.forgotten_as)
        return left

    async def live(self, user: str) -> set[str]:
        """Let *user* leave something everywhere; return the stores of keys that only the table of keys knows."""
        talk = Conversations(self.redis, deadline_s=PATIENCE_S)
        turn = json.dumps({"user_id": user, "text": secret_of(user)}).encode()
        await talk.append(f"hidden-{user}", turn, "hidden", user_id=user)
        # Before the town's day: what was said earlier than a tombstone would be hidden too.
        stones = Tombstones(
            self.redis, hidden_for=timedelta(days=9_999), deadline_s=PATIENCE_S
        )
        await stones.hide(user, by="hidden", now=NOW - timedelta(days=1))
        await self.talk(user)
        await self.work(user)
        await self.ask(user, user)
        await self.ask(user, user, of_user=True)
        await SessionCache(self.redis, deadline_s=PATIENCE_S).create(
            f"session-{user_token(user)[:16]}", user_id=user
        )
        await ProjectMemory(self.redis, deadline_s=PATIENCE_S).append(
            "town", "decision", f"we go by what {user} said", by=user
        )
        said = Episode(
            turn_id=f"{user}-turn",
            conversation_id=f"c-{user}",
            speaker="person",
            at=NOW,
            text=secret_of(user),
        )
        requests = RequestRecords(self.redis, deadline_s=PATIENCE_S)
        reply = Reply(secret_of(user).encode(), user)
        assert await requests.let_go(place_of("", "request", user), reply)
        episodes = Episodes(self.redis, deadline_s=PATIENCE_S)
        assert await episodes.append(user, [said]) == 1
        notices = Notices(self.redis, deadline_s=PATIENCE_S)
        await notices.put(user, said.turn_id, [secret_of(user)])
        schedule = Schedule(
            id=f"of-{user}",
            timing=Timing(every_s=60),
            parameters={"text": secret_of(user)},
            user_id=user,
            anchor=NOW,
            created_at=NOW,
            changed_at=NOW,
        )
        schedules = ScheduleStore(self.redis, "S", deadline_s=PATIENCE_S)
        assert await schedules.put(schedule, ScheduleState(NOW), NOW) == 1
        outbox = WebhookOutbox(self.redis, deadline_s=PATIENCE_S)
        now = datetime.now(UTC)
        callback = Callback(
            url=f"https://example.com/{secret_of(user)}",
            host="example.com:443",
            owner=user_token(user),
        )
        await outbox.await_task(
            f"{user}-calls-back", callback, now + timedelta(days=40)
        )
        body = json.dumps({"data": {"result": secret_of(user)}})
        about = {
            "id": f"msg_{user_token(user)}",
            "type": "task.completed",
            "body": body,
            "created_at": now,
        }
        assert await outbox.put(Webhook(**callback.model_dump(), **about), now) == 1
        return await self.leave_in_others(user)


@asynccontextmanager
async def town_on(servers: EmbeddedServers) -> AsyncIterator[Town]:
    async with (
        connected(servers.nats_url, "test") as client,
        valkey.connect(servers.redis_url, deadline_s=PATIENCE_S) as redis,
        open_outbox(link := Link(client)) as outbox,
    ):
        await declare_streams(client, StreamSizes())
        yield Town(servers, client, link, outbox, redis)
