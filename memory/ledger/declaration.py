"""The declaration of tasks, and of their runs, waits and requests."""

from collections.abc import Sequence

from redis.asyncio import Redis

from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.declaration import (
    is_shared,
    read_all_turns,
    turn_field,
    user_of,
)
from tasklore.memory.declarations import (
    AGENT,
    EVERY_ROLE,
    WORKERS,
    KeyAccess,
    Store,
    StoreKey,
    StoreRole,
    UserStore,
    user_store,
)
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.keys import ledger_agents, ledger_layout, run_agents
from tasklore.memory.ledger.requests import RequestRecords, place_of


def _open_requests(redis: Redis, deadline_s: float) -> UserStore:
    """Open the replies to a user, and to their requests in conversations of theirs alone before they gave a name."""
    requests = RequestRecords(redis, deadline_s=deadline_s)
    conversations = Conversations(redis, deadline_s=deadline_s)

    async def forget(user_id: str) -> int:
        removed = await requests.forget(user_id)
        for conversation_id in await conversations.of_user(user_id):
            turns = await read_all_turns(conversations, conversation_id)
            if not is_shared(turns, user_id):
                removed += await requests.forget_replies(_nameless_requests(turns))
        return removed

    return user_store("requests", forget, requests.count)


def _nameless_requests(turns: Sequence[bytes]) -> list[str]:
    """Return the places of the requests over HTTP that *turns* without a user may be of."""
    ids = {
        str(turn_field(turn, "request_id")) for turn in turns if user_of(turn) is None
    }
    return [place_of("", "request", request_id) for request_id in sorted(ids)]


STORES = (
    Store(
        name="tasks",
        keys=(
            StoreKey(
                names=("tl:task:{task_id}",),
                type="hash",
                lasts="7 days",
                holds="the ledger: every generation of a task",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:task:{task_id}:steps", ":results"),
                type="hash",
                lasts="7 days",
                holds="a head and a result for each step",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:task:AGENT:{task_id}",),
                type="hash",
                lasts="7 days",
                holds="the same in layout 2, by agent, without its reports",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:task:AGENT:{task_id}:report:N",),
                type="string",
                lasts="1 day",
                holds="the report of generation N there",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:task:AGENT:{task_id}:steps", ":results", ":children"),
                type="hashes, sorted set",
                lasts="7 days",
                holds="the same as without an agent",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:task-agent:{task_id}",),
                type="string",
                lasts="its entry's, at rest its report's",
                holds="its agent",
            ),
            StoreKey(
                names=("tl:ledger:{layout}",),
                type="string",
                lasts="none",
                holds="in which layout entries are made",
            ),
            StoreKey(
                names=("tl:ledger:{agents}",),
                type="set",
                lasts="none",
                holds="agents with entries of layout 2",
            ),
            StoreKey(
                names=("tl:children:{task_id}",),
                type="sorted set",
                lasts="7 days",
                holds="tasks that it called: id and `Agent.task`",
            ),
        ),
        bound="`tasks`; after the end `results`; answers and signals to it `signals`. A task asks at most 200 "
        "questions at a time and keeps 4,096 bytes of refusals; 10,000 children are listed",
        access=(
            KeyAccess(pattern="tl:task:*", writers=(StoreRole.SUPERVISOR,)),
            KeyAccess(pattern="tl:task:*", writers=WORKERS, layouts=(1,)),
            KeyAccess(
                pattern=f"tl:task:{AGENT}:*",
                writers=WORKERS,
                is_for_called=True,
                layouts=(2,),
            ),
            KeyAccess(pattern="tl:task-agent:{*", writers=EVERY_ROLE),
            KeyAccess(pattern=ledger_agents(), writers=EVERY_ROLE),
            KeyAccess(pattern=ledger_layout(), readers=EVERY_ROLE),
            KeyAccess(pattern="tl:children:{*", readers=(StoreRole.SUPERVISOR,)),
            KeyAccess(pattern="tl:children:{*", writers=WORKERS, layouts=(1,)),
        ),
        scripts=(scripts,),
    ),
    Store(
        name="open waits",
        keys=(
            StoreKey(
                names=("tl:waits:{index}",),
                type="sorted set",
                lasts="none",
                holds="open waits, by when to look at them next, in ms",
            ),
        ),
        bound="`tasks`",
        writers=EVERY_ROLE,
    ),
    Store(
        name="task list",
        keys=(
            StoreKey(
                names=("tl:runs:{Agent}",),
                type="sorted set",
                lasts="47 days after the last",
                holds="its runs, by their creation",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:runs:{Agent}:rows", ":open"),
                type="hash, sorted set",
                lasts="the same",
                holds="a row of each; those without a report, by the same",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:runs:{Agent}:user:token",),
                type="sorted set",
                lasts="its longest entry's",
                holds="a user's, by when nothing of one is left, in ms",
                forgotten_as=("tasks",),
            ),
            StoreKey(
                names=("tl:runs:{~agents}",),
                type="sorted set",
                lasts="none",
                holds="every agent that has runs, by its last one in ms",
            ),
        ),
        bound="100,000 ended tasks an agent, of those of the last 7 days; one entry an open task; a user's by "
        "`tasks` and `results`",
        access=(
            KeyAccess(pattern="tl:runs:{*", writers=(StoreRole.SUPERVISOR,)),
            KeyAccess(
                pattern=f"tl:runs:{{{AGENT}}}*", writers=WORKERS, is_for_called=True
            ),
            KeyAccess(pattern=run_agents(), writers=WORKERS),
        ),
    ),
    Store(
        name="ended tasks",
        keys=(
            StoreKey(
                names=("tl:ended:{slot}",),
                type="hash",
                lasts="none",
                holds="how many of a slot's tasks ended in each state",
            ),
            StoreKey(
                names=("tl:ended:{sums}:shared", ":lease"),
                type="string",
                lasts="10 s, 3 s",
                holds="those numbers added up; who adds them up",
            ),
        ),
        bound="one entry a slot",
        writers=EVERY_ROLE,
    ),
    Store(
        name="backlog",
        keys=(
            StoreKey(
                names=("tl:backlog:{all}", ":lease"),
                type="string",
                lasts="3 s",
                holds="how many tasks wait and workers are there; who reads that",
            ),
        ),
        bound="one entry an agent",
        writers=(StoreRole.SUPERVISOR,),
    ),
    Store(
        name="stream epochs",
        keys=(
            StoreKey(
                names=("tl:stream:{name}",),
                type="string",
                lasts="none",
                holds="the incarnation of a stream that has all open tasks",
            ),
        ),
        bound="one entry a stream",
        writers=(StoreRole.SUPERVISOR,),
    ),
    Store(
        name="requests",
        keys=(
            StoreKey(
                names=("tl:request:{id}", ":held"),
                type="string",
                lasts="1 day",
                holds="a request over HTTP, without its words; who works on it",
                ends_by_itself=True,
            ),
            StoreKey(
                names=("tl:request:{id}:reply",),
                type="string",
                lasts="1 day",
                holds="the reply to it, as it was first made",
                forgotten_as=("requests",),
            ),
            StoreKey(
                names=("tl:user-requests:{token}",),
                type="sorted set",
                lasts="1 day",
                holds="requests with replies to a user, by when each is over, in ms",
                forgotten_as=("requests",),
            ),
        ),
        bound="`words`; a reply is 32 KiB and the words of a result that is no text, one a request, for a day",
        writers=(StoreRole.SUPERVISOR,),
        of_users=_open_requests,
    ),
)
