"""Every Redis key there is: the only file that spells one.

| key | type | time to live | forgotten as | meaning |
|---|---|---|---|---|
| `tl:ltm:{Agent}:v1.1:question` | string | absolute, per task | answers | a remembered result, see `memory.long_term.entries` |
| `tl:ltm:{Agent}:v1.1:u:token:question` | string | absolute, per task | answers | the same, remembered for one user |
| `tl:ltm:{Agent}:near:v1.1:frame` | sorted set | its longest entry's | answers | remembered values, see `long_term.neighbours` |
| `tl:ltm:{Agent}:near:v1.1:frame:until`, `:2` | sorted sets | the same | answers | the same, by expiry in ms; by further values |
| `tl:ltm-hits:{Agent}:...` | string | its entry's | answers | how often the entry of the same ending was served |
| `tl:ltm-index:{Agent}` | sorted set | none | answers | an agent's entries by their end in ms, see `memory.long_term.index` |
| `tl:ltm-agents:{all}` | set | none | - | agents with such an index or a quarantine |
| `tl:ltm-users:{~all}` | sorted set | none | - | users with a list as below, by the ms of its end |
| `tl:ltm-users:{token}`, `tl:ltm-served:{token}` | set, hash | its longest entry's | answers | what tasks stored, what served |
| `tl:ltm-quarantine:{Agent}` | hash | none | - | entries of imported files that may answer another question |
| `tl:ltm-imports:{Agent}` | set | none | - | digests of the files that were imported, see `memory.long_term.owners` |
| `tl:flight:{Agent}:...` | hash | the lease | - | who computes the entry of the same ending, and whether others wait |
| `tl:task:{task_id}` | hash | 7 days | tasks | the ledger: every generation of a task, see `memory.ledger.ledger` |
| `tl:task:{task_id}:steps`, `:results` | hash | 7 days | tasks | a head and a result for each step, see `ledger.journal` |
| `tl:task:AGENT:{task_id}` | hash | 7 days | tasks | the same in layout 2, by agent, without its reports |
| `tl:task:AGENT:{task_id}:report:N` | string | 1 day | tasks | the report of generation N there |
| `tl:task:AGENT:{task_id}:steps`, `:results`, `:children` | hashes, sorted set | 7 days | tasks | as below of it |
| `tl:task-agent:{task_id}` | string | its entry's, at rest its report's | - | its agent, see `ledger.layouts` |
| `tl:ledger:{layout}` | string | none | - | in which layout entries are made, see `ledger.layouts` |
| `tl:ledger:{agents}` | set | none | - | agents with entries of layout 2, see `ledger.layouts` |
| `tl:waits:{index}` | sorted set | none | - | open waits, by when to look at them next, in ms |
| `tl:places:{bound}`, `:runs` | sorted set, hash | 7 days | - | who runs under a bound; `:queue`, `:seen` who waits |
| `tl:children:{task_id}` | sorted set | 7 days | - | tasks that it called: id and `Agent.task`, see `ledger.task_tree` |
| `tl:runs:{Agent}` | sorted set | 47 days after the last | tasks | its runs, by their creation, see `ledger.run_index` |
| `tl:runs:{Agent}:rows`, `:open` | hash, sorted set | the same | tasks | a row of each; those without a report, by the same |
| `tl:runs:{Agent}:user:token` | sorted set | its longest entry's | tasks | a user's, by when nothing of one is left, in ms |
| `tl:runs:{~agents}` | sorted set | none | - | every agent that has runs, by its last one in ms |
| `tl:ended:{slot}` | hash | none | - | how many of a slot's tasks ended in each state, see `memory.ledger.tally` |
| `tl:ended:{sums}:shared`, `:lease` | string | 10 s, 3 s | - | those numbers added up; who adds them up |
| `tl:backlog:{all}`, `:lease` | string | 3 s | - | how many tasks wait and workers are there; who reads that |
| `tl:stream:{name}` | string | none | - | the incarnation of a stream that has all open tasks, see `ledger.stream_epochs` |
| `tl:conversation:{id}` | list | 30 days after its last use | conversations | turns and utterances, oldest first |
| `tl:conversation:{id}:ids`, `:digest` | sorted set, hash | the same | conversations | ids of that and of what waits; the rest |
| `tl:inbox:{id}`, `:state` | list, hash | the same | conversations | what waits to enter that conversation; what was seen, its tenant |
| `tl:observations:{id}`, `:ids` | list, sorted set | 30 days after the last | conversations | what it sensed and did; in which tasks |
| `tl:doc:{token}:resource` | hash | none | documents | a JSON memory document: `revision`, `born`, `body`, `form` |
| `tl:doc:{token}:resource:log` | list | none | documents | every edit of that document with its inverse, oldest first |
| `tl:doc:{token}:plans`, `:reads` | hash | none | documents | applied plans by id; when each place was last shown |
| `tl:episodes:{token}` | hash | from its last turn | episodes | turns of an owner; `:ids`, `:words`, `:meta` find them |
| `tl:episodes:{token}:settings` | hash | none | episodes | whether turns of that owner are kept, and for how many days |
| `tl:turns:{token}`, `tl:facts:{token}` | hash | none | turns, facts | the table of a user's turns and facts: a row by id |
| `tl:facts:{token}:pending` | sorted set | none | facts | ids that wait, in order |
| `tl:facts:{token}:state`, `:closed` | hash, sorted set | none | facts | how far each row is; those that are over, by ms |
| `tl:facts:{token}:lease`, `:fence` | hash, string | the lease, none | facts | who works on those rows; it only grows |
| `tl:owners:{turns}`, `tl:owners:{facts}` | sorted set | none | - | whose rows wait, by when they are due, in ms |
| `tl:notices:{token}` | list | 2 days after its last line | episodes | new facts not yet said; `:hurry` a reply that waits |
| `tl:user-conversations:{token}` | set | 30 days | conversations | the ids of a user's conversations |
| `tl:session:{id}` | hash | from its last update, none while its pipeline runs | sessions | a session, see `sessions.session` |
| `tl:session:{id}:entries` | hash | the same | sessions | its entries: a body by its key, its head by `:` and its key |
| `tl:session:{id}:hits`, `:uses` | hash, set | the same | sessions | how often each entry was used; readers that are counted |
| `tl:session:{id}:phases`, `:tasks` | hash | the same | sessions | how far each phase is; the task that may write for it |
| `tl:session:{id}:corrected`, `:seen` | hash | the same | sessions | phases that others replace; what each read beside |
| `tl:session:{id}:lease` | hash | the lease | sessions | which supervisor drives the run: `holder`, `fence` |
| `tl:flight:{id}:...` | hash | the lease | - | who computes the entry of that session and key, or of a story |
| `tl:sessions:{index}` | sorted set | none | - | every session, by its last update in ms |
| `tl:running:{supervisor}` | sorted set | none | - | sessions whose pipelines run, by when to look at them next, in ms |
| `tl:running:{~makers}` | hash | none | sessions | who asked for each of them, by session id, see `sessions.pipeline_runs` |
| `tl:run:{id}` | string | 1 day | sessions | the end of a run, for requests after its session |
| `tl:user-sessions:{token}` | set | none | sessions | sessions that were started for a user, so that forgetting finds them |
| `tl:project:{id}` | hash | none | texts in projects | a project's records by id, see `memory.projects.project` |
| `tl:project:{id}:...` | sorted sets | none | texts in projects | the same by time, kind, tag and word |
| `tl:projects:{index}` | sorted set | none | - | every project, by its last record in ms |
| `tl:story:{id}` | hash | none | - | where a story begins, and its `revision`, see `memory.stories.store` |
| `tl:story:{id}:entities`, `:responses` | hash | none | - | its entities by name, its last responses by number |
| `tl:story:{id}:written` | sorted set | none | - | those responses, by which was written before which |
| `tl:story:{id}:changes:...` | hash | none | - | what responses changed, by number, as one agent found it |
| `tl:analysis:{id}` | hash | none | - | its last analysis documents by response number, see `memory.stories.analyses` |
| `tl:analysis:{id}:records`, `:written` | hash, sorted set | none | - | how far each is, by number; their order |
| `tl:stories:{index}` | sorted set | none | - | every story, by when it was last loaded or got a response, in ms |
| `tl:analysing:{supervisor}` | sorted set | none | - | analyses under way, by when to look at them next, in ms |
| `tl:schedules:{supervisor}` | hash | none | schedules | schedules; `:state`, `:due`, `:owned`, `:made`, see `memory.schedules` |
| `tl:schedules:{~books}` | set | none | - | supervisor ids that have, or had, schedules |
| `tl:webhooks:{all}:...` | several | none | webhooks | webhooks on their way or given up, see `memory.webhooks.outbox` |
| `tl:holdings:{all}:...` | several | none | - | the bytes that each owner keeps, see `memory.holdings.store` |
| `tl:request:{id}` | strings | 1 day | its end | a request over HTTP; `:held` while it is worked on, `:end` how it ended |
| `tl:budget:{all}:...` | several | 40 days | - | limits, accounts and books, see `budgets.store`; who admits tasks |
| `tl:flights` | channel | - | - | the flight keys that have just landed |

A key has one pair of braces, the cluster's hash tag; each part is checked or percent-escaped, so that none opens more.
`forgotten as` is the store of `workers.forgetting.stores` that removes what a user left in it; `-` where nothing of a
user is, `its end` where that comes within days. A new key has a row above and a role in `deploy.privileges.roles`.
"""  # noqa: E501 - rows of a table

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import key_parts
from tasklore.memory.key_parts import LongTermKey as LongTermKey
from tasklore.memory.key_parts import QueueKeys as QueueKeys
from tasklore.memory.key_parts import SessionKeys as SessionKeys
from tasklore.memory.key_parts import (
    check_name,
    check_queue,
    check_resource,
    check_token,
    escape,
    is_name,
)
from tasklore.memory.slots import companion, companions

#: The channel on which single flights that others wait for are announced.
FLIGHTS = "tl:flights"
#: The keys of the outbox of webhooks.
WEBHOOKS = key_parts.WebhookKeys(
    *(f"tl:webhooks:{{all}}:{part}" for part in key_parts.WebhookKeys._fields)
)
#: The keys of what owners keep.
HOLDINGS = key_parts.HoldingKeys(
    *(f"tl:holdings:{{all}}:{part}" for part in key_parts.HoldingKeys._fields)
)

_LTM = "tl:ltm:"
_NEAR = ":near:"
_NEAR_UNTIL = ":until"
_INDEX = "tl:ltm-index:"
_FLIGHT = "tl:flight:"
_QUARANTINE = "tl:ltm-quarantine:"
_TASK = "tl:task:"
_VERSION = re.compile(r"[A-Za-z0-9._+-]{1,64}\Z")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.-]{1,512}\Z")
_ENTRY = re.compile(
    r"tl:ltm:\{([A-Za-z0-9_-]{1,64})\}:v([^:]+):(?:u:([A-Za-z0-9_-]+):)?(.+)\Z",
    re.DOTALL,
)


def ltm(
    agent_id: str, version: str, question: str, user_token: str | None = None
) -> str:
    """Return the key of the answer to *question*, a `Parameters.key(task_name)`, shared or of one user.

    *version* is agent version, dot, task version, digest of the code and perhaps a settings fingerprint
    (`1.1-9f3c2a17+3fa9c01d`); a leading `v` is the same.

    Raises:
        InvalidInput: the agent id, version or token has characters that could act as a delimiter.
    """
    prefix = _entry_prefix(agent_id, version, user_token)
    question = question.replace("{", "%7B").replace("}", "%7D")
    # A task called "u" must not read as the mark of a user's entry.
    if question.startswith("u:"):
        question = "%75" + question[1:]
    return prefix + question


@lru_cache(maxsize=1024)
def _entry_prefix(agent_id: str, version: str, user_token: str | None) -> str:
    if not _VERSION.match(number := version.removeprefix("v")):
        raise InvalidInput(
            f"version {version!r} must be 1 to 64 letters, digits, '.', '+', '_' or '-'"
        )
    shared = f"{_LTM}{{{check_name(agent_id)}}}:v{number}:"
    return shared if user_token is None else f"{shared}u:{check_token(user_token)}:"


def parse_ltm(key: str) -> LongTermKey | None:
    """Return the parts of a key made by `ltm`, or None when *key* is not one."""
    match = _ENTRY.match(key)
    if match is None:
        return None
    agent_id, version, token, question = match.groups()
    if question.startswith("%75:"):
        question = "u" + question[3:]
    return LongTermKey(agent_id, version, token, question)


def ltm_pattern(agent_id: str | None = None) -> str:
    """Return the SCAN pattern of every remembered entry, of one agent when given."""
    return (
        f"{_LTM}{{{check_name(agent_id)}}}:*" if agent_id is not None else f"{_LTM}{{*"
    )


def hits_of(entry_key: str) -> str:
    """Return the key that counts how often *entry_key* was served; same tag."""
    return "tl:ltm-hits:" + entry_key[len(_LTM) :]


def near(entry_key: str, frame: str, fields: int = 1) -> tuple[str, ...]:
    """Return the keys that tell which entries may be near to *entry_key*; same tag.

    By the first value, by expiry, and then by every further one of the values of *fields*. *frame* is that of a
    `tasklore.contracts.parameters.neighbours.Neighbourhood`. Entries of one version and user share them.
    """
    return near_below(near_of(entry_key) + check_name(frame, "frame"), fields)


def near_below(root: str, fields: int) -> tuple[str, ...]:
    """Return the keys that `near` makes of so many *fields*, of which the first is *root*."""
    return (
        root,
        root + _NEAR_UNTIL,
        *(f"{root}:{number}" for number in range(2, fields + 1)),
    )


def near_root(key: str) -> str | None:
    """Return the first of the keys that `near` makes when *key* is the one by expiry, None for any other."""
    is_by_expiry = is_near(key) and key.endswith(_NEAR_UNTIL)
    return key.removesuffix(_NEAR_UNTIL) if is_by_expiry else None


def near_of(entry_key: str) -> str:
    """Return how every key that `near` makes for *entry_key* begins; raises InvalidInput for a key of another kind."""
    parts = parse_ltm(entry_key)
    if parts is None:
        raise InvalidInput(
            f"{entry_key!r} is not a long-term memory key; make it with `tasklore.memory.keys.ltm`"
        )
    whose = f"u:{parts.user_token}:" if parts.user_token is not None else ""
    return f"{_LTM}{{{parts.agent_id}}}{_NEAR}v{parts.version}:{whose}"


def is_near(key: str) -> bool:
    """Return whether *key* was made by `near`."""
    return key.startswith(_LTM) and key.partition("}")[2].startswith(_NEAR)


def ltm_listing(entry_key: str) -> tuple[str, str]:
    """Return the key of the index that lists *entry_key*, or a key of `near`, and its member there; same tag."""
    end = entry_key.index("}") + 1
    return _INDEX + entry_key[len(_LTM) : end], entry_key[end + 1 :]


def ltm_index(agent_id: str) -> str:
    """Return the key of the index of an agent's entries."""
    return f"{_INDEX}{{{check_name(agent_id)}}}"


def ltm_listed(index: str, member: str) -> str:
    """Return the key that *member* of the index *index* stands for."""
    return f"{_LTM}{index[len(_INDEX) :]}:{member}"


def ltm_agents() -> str:
    """Return the key of the agents that have such an index, or a quarantine."""
    return "tl:ltm-agents:{all}"


def ltm_user_lists() -> str:
    """Return the key that lists the tokens of users that have a list of entries; no token reads like its tag."""
    return "tl:ltm-users:{~all}"


def flight_of(entry_key: str) -> str:
    """Return the key of the lease under which the answer at *entry_key* is computed; same tag."""
    return _FLIGHT + entry_key[len(_LTM) :]


def ltm_users(user_token: str) -> str:
    """Return the key that lists which entries a user's tasks stored."""
    return f"tl:ltm-users:{{{check_token(user_token)}}}"


def ltm_served(user_token: str) -> str:
    """Return the key that counts how often a user was served the entries that their own tasks stored; same tag."""
    return f"tl:ltm-served:{{{check_token(user_token)}}}"


def ltm_users_pattern() -> str:
    """Return the SCAN pattern of every user's list of entries, and of the list of those lists."""
    return "tl:ltm-users:{*"


def parse_ltm_users(key: str) -> str:
    """Return the token in a key made by `ltm_users`."""
    return key[len("tl:ltm-users:{") : -1]


def quarantine(agent_id: str) -> str:
    """Return the key of an agent's imported entries that are never served."""
    return f"{_QUARANTINE}{{{check_name(agent_id)}}}"


def imports(agent_id: str) -> str:
    """Return the key of the list of files that an agent's memory was imported from."""
    return f"tl:ltm-imports:{{{check_name(agent_id)}}}"


def quarantine_pattern() -> str:
    """Return the SCAN pattern of every agent's quarantine."""
    return f"{_QUARANTINE}{{*"


def parse_quarantine(key: str) -> str:
    """Return the agent id in a key made by `quarantine`."""
    return key[len(_QUARANTINE) + 1 : -1]


def task(task_id: str) -> str:
    """Return the ledger key of a task."""
    return _TASK + _task_tag(task_id)


def entry(task: TaskName) -> str:
    """Return the key of a task in layout 2 of the ledger; raises InvalidInput for an agent that is none."""
    return f"{_TASK}{check_name(task.agent_id)}:{_task_tag(task)}"


def entry_report(entry_key: str, generation: int) -> str:
    """Return the key of the report of a *generation* of the task at *entry_key*; same tag."""
    return f"{entry_key}:report:{generation}"


def task_agent(task_id: str) -> str:
    """Return the key that says which agent a task of layout 2 is for; same tag."""
    return f"tl:task-agent:{_task_tag(task_id)}"


def ledger_layout() -> str:
    """Return the key that says in which layout entries of the ledger are made."""
    return "tl:ledger:{layout}"


def ledger_agents() -> str:
    """Return the key of the agents that have entries of layout 2."""
    return "tl:ledger:{agents}"


def task_pattern() -> str:
    """Return the SCAN pattern of every task in the ledger, in both layouts."""
    return f"{_TASK}*}}"


def steps(entry_key: str) -> tuple[str, str]:
    """Return the keys of the journal beside the entry of a task: heads of its steps, and their results."""
    return f"{entry_key}:steps", f"{entry_key}:results"


def children(task_id: str) -> str:
    """Return the key of the list of tasks that a task called; same tag."""
    return f"tl:children:{_task_tag(task_id)}"


@lru_cache(maxsize=1024)
def runs(agent_id: str) -> key_parts.RunKeys:
    """Return the keys of the list of an agent's runs."""
    root = f"tl:runs:{{{check_name(agent_id)}}}"
    return key_parts.RunKeys(root, rows=f"{root}:rows", open=f"{root}:open")


def run_agents() -> str:
    """Return the key of every agent that has runs: no agent's id begins so."""
    return "tl:runs:{~agents}"


def budget(*parts: str) -> str:
    """Return the key of a part of the budgets: all in one slot, as one call is held against many accounts."""
    return ":".join(
        (
            "tl:budget:{all}",
            *(part.replace("{", "%7B").replace("}", "%7D") for part in parts),
        )
    )


def places(bound: str) -> tuple[str, str, str, str]:
    """Return the keys of one bound on runs: places that are held, by which runs, and those that wait."""
    return (
        (root := f"tl:places:{{{escape(bound, 'bound')}}}"),
        f"{root}:runs",
        f"{root}:queue",
        f"{root}:seen",
    )


def parse_task(key: bytes) -> str:
    """Return the task id in a key made by `task` or `entry`, a TaskName of the latter; any program may have made it."""
    agent_id, _, tag = key.decode(errors="replace")[len(_TASK) :].partition("{")
    task_id = unquote(tag[:-1])
    is_named = is_name(agent_id[:-1])
    return TaskName(agent_id[:-1], task_id) if is_named else task_id


def end_counts(task_key: str) -> str:
    """Return the key that counts how tasks ended, in the slot of *task_key*: its tag is another, its slot the same."""
    return f"tl:ended:{{{companion(task_key[task_key.index('{') + 1 : -1])}}}"


def every_ended() -> Iterator[str]:
    """Yield every key that counts how tasks ended, one a slot."""
    return (f"tl:ended:{{{tag}}}" for tag in companions())


def end_sums() -> tuple[str, str]:
    """Return the key of what all those counters add up to, and of the lease of the process that adds them up."""
    return "tl:ended:{sums}:shared", "tl:ended:{sums}:lease"


def backlog() -> tuple[str, str]:
    """Return the keys of the backlog (tasks by subject, workers by agent) and of the lease of its reader."""
    return "tl:backlog:{all}", "tl:backlog:{all}:lease"


def stream(name: str) -> str:
    """Return the key that says which incarnation of the NATS stream *name* is known to have every open task."""
    return f"tl:stream:{{{check_name(name, 'stream')}}}"


def conversation(conversation_id: str) -> key_parts.ConversationKeys:
    """Return the keys of a conversation and of what waits for it; the id is free text."""
    tag = f"{{{escape(conversation_id, 'conversation id')}}}"
    said = f"tl:conversation:{tag}"
    inbox = f"tl:inbox:{tag}"
    observed = f"tl:observations:{tag}"
    own = (
        said,
        f"{said}:ids",
        inbox,
        f"{inbox}:state",
        f"{said}:digest",
        observed,
        f"{observed}:ids",
    )
    return key_parts.ConversationKeys(*own)


def document(user_token: str, resource_id: str) -> str:
    """Return the key of one JSON memory document of a user; raises InvalidInput for a token or id that is none."""
    return f"{_documents(user_token)}:{check_resource(resource_id)}"


def document_log(user_token: str, resource_id: str) -> str:
    """Return the key of every edit of a document; same tag."""
    return f"{document(user_token, resource_id)}:log"


def plans(user_token: str) -> str:
    """Return the key of a user's applied plans by id; same tag as the documents."""
    return f"{_documents(user_token)}:plans"


def document_reads(user_token: str) -> str:
    """Return the key of when each place of a user's documents was last shown; same tag."""
    return f"{_documents(user_token)}:reads"


def documents_pattern(user_token: str) -> str:
    """Return the SCAN pattern of everything stored beside a user's documents."""
    return f"{_documents(user_token)}:*"


def plans_pattern() -> str:
    """Return the SCAN pattern of every user's plans."""
    return "tl:doc:{*}:plans"


def parse_plans(key: str) -> str:
    """Return the user token in a key made by `plans`."""
    return key[len("tl:doc:{") : -len("}:plans")]


def queue(name: str, owner_token: str) -> QueueKeys:
    """Return the keys of what waits for *owner_token* in the queue *name*, `turns` or `facts`."""
    rows = f"tl:{check_queue(name)}:{{{check_token(owner_token)}}}"
    return QueueKeys(
        rows,
        *(
            f"{rows}:{part}"
            for part in ("pending", "state", "closed", "lease", "fence")
        ),
    )


def episodes(owner_token: str) -> key_parts.EpisodeKeys:
    """Return the keys of the turns of *owner_token*."""
    return key_parts.EpisodeKeys.under(f"tl:episodes:{{{check_token(owner_token)}}}")


def owners(name: str) -> str:
    """Return the key of the owners whose rows wait in the queue *name*."""
    return f"tl:owners:{{{check_queue(name)}}}"


def notices(user_token: str) -> tuple[str, str]:
    """Return the keys of a user's notices, and of the reply that waits for them."""
    return (lines := f"tl:notices:{{{check_token(user_token)}}}"), f"{lines}:hurry"


def user_conversations(user_token: str) -> str:
    """Return the key that lists a user's conversations, so that forgetting finds them."""
    return f"tl:user-conversations:{{{check_token(user_token)}}}"


def session(session_id: str) -> SessionKeys:
    """Return the keys of the session *session_id*."""
    root = f"tl:session:{{{check_name(session_id, 'session id')}}}"
    return SessionKeys(root, *(f"{root}:{part}" for part in SessionKeys._fields[1:]))


def session_flight(session_id: str, entry_key: str) -> str:
    """Return the key of the lease under which the entry *entry_key* of a session is computed; same tag."""
    return f"{_FLIGHT}{{{check_name(session_id, 'session id')}}}:{escape(entry_key, 'session key')}"


def index(name: Literal["sessions", "projects", "stories", "waits"]) -> str:
    """Return the key that lists every session, project, story or open wait."""
    return f"tl:{name}:{{index}}"


def running(supervisor_id: str) -> str:
    """Return the key that lists the sessions whose pipelines run for *supervisor_id*."""
    return f"tl:running:{{{check_name(supervisor_id, 'supervisor id')}}}"


def run_makers() -> str:
    """Return the key of who asked for each run that goes on: workers, who write sessions, have no access to it."""
    return "tl:running:{~makers}"


def run(session_id: str) -> str:
    """Return the key of the end of the run *session_id*."""
    return f"tl:run:{{{check_name(session_id, 'session id')}}}"


def user_sessions(user_token: str) -> str:
    """Return the key that lists the sessions started for a user."""
    return f"tl:user-sessions:{{{check_token(user_token)}}}"


def project(project_id: str) -> str:
    """Return the key of a project's records."""
    return f"tl:project:{{{check_name(project_id, 'project id')}}}"


def project_part(project_id: str, *parts: str) -> str:
    """Return the key of something beside a project's records, such as `"tag", "naming"`; same tag, any text."""
    return ":".join(
        (
            project(project_id),
            *(escape(part, "part of a project key") for part in parts),
        )
    )


def story(story_id: str) -> key_parts.StoryKeys:
    """Return the keys of the story *story_id*."""
    tag = f"{{{check_name(story_id, 'story id')}}}"
    own = (
        f"tl:story:{tag}{part}" for part in ("", ":entities", ":responses", ":written")
    )
    return key_parts.StoryKeys(
        *own, *(f"tl:analysis:{tag}{part}" for part in ("", ":records", ":written"))
    )


def story_changes(story_id: str, section: str) -> str:
    """Return the key of what responses changed as the agent of *section* found it; same tag."""
    return f"{story(story_id).base}:changes:{check_name(section, 'section')}"


def analysing(supervisor_id: str) -> str:
    """Return the key that lists the analyses under way for *supervisor_id*."""
    return f"tl:analysing:{{{check_name(supervisor_id, 'supervisor id')}}}"


def schedules(supervisor_id: str) -> key_parts.ScheduleKeys:
    """Return the keys of the schedules of *supervisor_id*."""
    root = f"tl:schedules:{{{check_name(supervisor_id, 'supervisor id')}}}"
    parts = ("state", "due", "owned", "made")
    return key_parts.ScheduleKeys(root, *(f"{root}:{part}" for part in parts))


def schedule_books() -> str:
    """Return the key of the supervisor ids that have schedules; no id reads like its tag."""
    return "tl:schedules:{~books}"


def request(digest: str) -> tuple[str, str, str]:
    """Return the keys of a request over HTTP: itself, its holder, its end."""
    return (
        (root := f"tl:request:{{{check_name(digest, 'request digest')}}}"),
        f"{root}:held",
        f"{root}:end",
    )


def _task_tag(task_id: str) -> str:
    # The common id is its own spelling: this runs for every task.
    return f"{{{task_id if _PLAIN_ID.match(task_id) else escape(task_id, 'task id')}}}"


def _documents(user_token: str) -> str:
    return f"tl:doc:{{{check_token(user_token)}}}"
