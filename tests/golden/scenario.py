"""Commands as they are typed, noun by noun, on the system of `seeded.py`; each comes after those before it."""

from dataclasses import dataclass, field

from tasklore.commands.operations.entries import load_manifest, operations_of

_NAP = "NapAgent"
_PHASES = """name = "naps"
result = "second:results"

[inputs.ms]
type = "number"

[[phase]]
name = "first"
agent = "NapAgent"
task = "take_nap"
parameters = { ms = "${input.ms}" }

[[phase]]
name = "second"
agent = "NapAgent"
task = "take_nap"
after = ["first"]
parameters = { ms = SECOND }
"""
_STORY = {
    "quay/story.toml": 'story_id = "quay"\ntitle = "The Quay"\n',
    "quay/entities/anna.md": "# Anna Lind\n\nKeeps the quay.\n",
    "quay/responses/Ch1-R001.md": 'Anna Lind counted ropes. "All here," she said.\n',
}
#: Files in the folder in which the commands are given.
FILES = {
    **_STORY,
    "naps.toml": _PHASES.replace("SECOND", "2"),
    "fails.toml": _PHASES.replace("SECOND", "13"),
    "long.toml": _PHASES.replace("SECOND", "600000"),
    "faulty.toml": _PHASES.replace("take_nap", "take_a_nap").replace("SECOND", "2"),
    "not.json": "{nope",
    "kept.json": "{}",
    "limits.toml": 'time_zone = "UTC"\n[[limits]]\nname = "day"\nusd = 20\n'
    'every = "day"\ntenant = "*"\nat_limit = "refuse"\n',
    "faulty-limits.toml": '[[limits]]\nname = "day"\nusd = "x"\nevery = "day"\n',
    "shop.jsonl": '{"record_id": "d1", "kind": "decision", "text": "Prices are in cents", '
    '"at": "2099-01-01T00:00:00Z"}\n{"record_id": "d2"}\n',
    "food.json": '{"_metadata": {"resource_id": "resource_user_food_prefs"}, '
    '"food": {"likes": [{"item": "lox", "display": "Lox"}]}}',
}


@dataclass(frozen=True)
class Step:
    """A command line; `keep` names places of its JSON that later lines write as `{name}`.

    A place is a path with dots, and a pattern behind a space for a part of the text.
    What fields named by *hides* hold is another test's matter, or the machine's. With
    *until*, a pattern, it is given again until that is in what it prints: what it shows
    is made by another process.
    """

    line: str
    stdin: str = ""
    keep: dict[str, str] = field(default_factory=dict)
    until: str = ""
    hides: tuple[str, ...] = ()


#: What a count of tasks says depends on how far those of other nouns are.
_COUNTED = (
    *("open", "oldest_ms", "looked_at", "states", "waits"),
    *("failed", "failures", "is_cut"),
)


def _steps(*lines: str | Step) -> tuple[Step, ...]:
    return tuple(Step(line) if isinstance(line, str) else line for line in lines)


_QUESTION = "'limit 50k, spent 42000: how is my budget?'"

_WRITTEN: dict[str, tuple[Step, ...]] = {
    "ask": _steps(
        Step(f"ask {_QUESTION} --json", keep={"task": "reply.report.task_id"}),
        f"ask {_QUESTION} --json",
        f"ask {_QUESTION} --user bob --conversation talk --no-memory --json",
        f"ask {_QUESTION}",
        "ask 'Check my budget of 50k' --conversation open --json",
        "ask 'spent 42000' --conversation open --json",
        "ask 'sing me a song' --json",
        "ask 'take a nap of 13' --json",
        "ask 'take a nap of 13' --user bob --json",
        "ask 'take a nap of 3' --at 2099-12-24T18:00 --time-zone Europe/Berlin --json",
        "ask --after 2h 'take a nap of 3' --json",
        Step(
            "ask 'take a nap of 600000' --wait 0 --request-id long --json",
            keep={"long": r"reply.text r-\w+"},
            until="still working on it",
        ),
    ),
    "trace": _steps("trace {task} --json", "trace {task}"),
    "stream-tokens": _steps(
        Step(
            "stream-tokens make /v1/tasks/{task}/output --json", hides=("token", "url")
        ),
    ),
    "cancel": _steps(
        "cancel {long} --reason 'asked twice' --json",
        "cancel {task} --json",
    ),
    "tasks": _steps(
        Step("tasks list --json", until='"cancelled"'),
        "tasks list --state failed --json",
        "tasks list --agent BudgetTrackerAgent --limit 1 --json",
        "tasks list --user bob --since 1h --json",
        "tasks list --error GiveUp --json",
        Step(
            "tasks send DoublerAgent double -p number=4 --user bob --json",
            keep={"sent": "task_id"},
        ),
        "tasks send DoublerAgent double -p number=4",
        "tasks send DoublerAgent double -p word=four",
        "tasks show {sent} --json",
        "tasks show {sent}",
        "tasks signal {sent} paid 12 --json",
        Step("tasks count --json", hides=_COUNTED),
        "tasks assignment {task} --json",
    ),
    "console": _steps(
        Step("console --json", hides=("url", "expires_at")),
    ),
    "limits": _steps(
        "limits show --json",
        "limits set acme --tenant acme --usd 20 --every day",
        "limits set naps --agent NapAgent --at-most 50 --json",
        "limits set acme --at-limit refuse",
        "limits show --json",
        "limits show",
        "limits check limits.toml",
        "limits check faulty-limits.toml",
        "limits apply limits.toml",
        "limits apply limits.toml --yes",
        "limits remove day",
        "limits restore 3 --yes",
        "limits history --json",
    ),
    "budget": _steps(
        "budget --json",
        "budget --by tenant --days 7 --json",
        "budget --tree {task} --json",
    ),
    "api-key": _steps("api-key shop --role ask --user alice --file shop.json"),
    "init": _steps("init greeter"),
    "config": _steps(Step("config --json", hides=("description", "unit", "value"))),
    "doctor": _steps(
        Step(
            "doctor --json",
            hides=("counts", "cure", "durability", "durability_means", "found", "mark"),
        )
    ),
    "bootstrap": _steps("bootstrap budget"),
    "pipelines": _steps(
        "pipelines installed --json",
        "pipelines check naps.toml --json",
        "pipelines check faulty.toml --json",
        "pipelines run naps.toml --input ms=20 --session kept --keep --user bob --json",
        "pipelines run fails.toml --input ms=20 --session failed --json",
        "pipelines run naps.toml --input ms=20 --session gone",
        "pipelines run long.toml --input ms=20 --session long --no-wait --json",
        Step("pipelines status long --json", until='"done".*"running"'),
        "pipelines cancel long --reason 'too long' --wait 0 --json",
        "pipelines check naps.toml --input ms=20 --cost --json",
        "pipelines cost naps.toml --input ms=20 --json",
        "pipelines status kept --json",
        "pipelines status failed --json",
        "pipelines status gone --json",
        "pipelines evidence kept",
        "pipelines evidence failed own.json",
        "pipelines restore own.json --json",
        "pipelines invalidate kept --phase second --json",
        "pipelines resume kept --json",
        "pipelines resume failed --file naps.toml --json",
        "pipelines rerun kept --from second",
        Step("pipelines list --json", until='"cancelled"'),
    ),
    "projects": _steps(
        "projects decide shop 'Prices are in cents' --tag money --by ana --json",
        "projects decide shop 'Prices are in euros' --supersedes d1 --json",
        "projects standard shop 'Functions are short' --tag size",
        "projects history shop --json",
        "projects search shop prices --in-force --json",
        "projects show shop d1 --json",
        "projects show shop d1",
        "projects export shop",
        "projects import copy shop.jsonl --json",
        "projects import copy shop.jsonl",
        Step("projects list --json", hides=("history",)),
        "projects search nosuch",
    ),
    "stories": _steps(
        "stories example lighthouse",
        "stories check quay --json",
        "stories load quay --json",
        "stories list --json",
        "stories show quay --json",
        "stories show quay",
        "stories delete quay",
        "stories delete quay --yes --json",
    ),
    "worlds": _steps(
        "worlds tell coins.Ana Bob 'A storm!' --time 8 --message-id b17 --json",
        "worlds tell coins.Ana Bob 'A storm!' --time 8 --message-id b17",
        "worlds waiting coins.Ana --json",
        "worlds waiting coins.Ana",
    ),
    "analyses": _steps(
        "analyses run quay --wait 60 --json",
        "analyses context quay --json",
        "analyses show quay --json",
        "analyses get quay meta.status",
        "analyses check quay/state/agent_analysis.json --json",
    ),
    "memory": _steps(
        "memory tell ana 'I like omelettes, but no eggs on Friday' --json",
        "memory import ana food.json --json",
        "memory show ana --resource food --json",
        "memory show ana --format markdown",
        "memory facts ana --json",
        "memory search ana omelettes --json",
        "memory waiting ana --json",
        "memory settings ana --json",
        "memory change-settings ana --days 30 --json",
        "memory history ana --json",
        "memory diff ana food --json",
        "memory explain ana food.likes[0] --resource food --json",
        "memory undo ana --json",
        "memory redo ana --json",
        "memory conflicts ana --json",
        "memory audit ana --json",
        "memory export ana out",
        "memory list ana --json",
        "memory items ana --json",
        "memory block ana --json",
        "memory document ana resource_user_food_prefs --json",
        "memory document-history ana resource_user_food_prefs --json",
        "memory add-item ana food.likes herring --json",
        "memory add-item ana food.likes dill --wait 30s",
        "memory document-undo ana resource_user_food_prefs --wait 30s --json",
        "memory change-item ana nosuch dill --json",
        "memory delete-item ana nosuch --json",
        "memory turn ana nosuch --wait 0 --json",
        "memory forget kim --json",
        Step("memory forget kim --yes --json", hides=("beside",)),
    ),
    "approvals": _steps(
        Step(
            "ask 'transfer: label \"a\", amount 12' --wait 0 --request-id a --json",
            until='"approval_id".*"waits_for": "person"',
        ),
        Step(
            "approvals list --json",
            until='"question"',
            keep={"first": "approvals.0.id"},
        ),
        "approvals show {first} --json",
        "approvals approve {first} --dry-run --json",
        "approvals approve {first} --note fine --yes --json",
        "approvals approve {first} --yes",
        Step(
            "ask 'transfer: label \"b\", amount 13' --wait 0 --request-id b --json",
            until='"approval_id".*"waits_for": "person"',
        ),
        Step(
            "approvals list --json",
            until='"question"',
            keep={"second": "approvals.0.id"},
        ),
        "approvals reject {second}",
        "approvals reject {second} --note twice --yes --json",
        Step(
            "ask 'transfer: label \"c\", amount 14' --wait 0 --request-id c --json",
            until='"approval_id".*"waits_for": "person"',
        ),
        Step(
            "approvals list --json",
            until='"question"',
            keep={"third": "approvals.0.id"},
        ),
        "approvals answer {third} '{\"approved\": true}' --json",
        Step("approvals link {third} role:finance --json", hides=("url",)),
    ),
    "results": _steps(
        "results list --json",
        "results list --since 1h --agent BudgetTrackerAgent --task analyze_budget "
        "--json",
        "results show analyze_budget:50000:42000:no_history --json",
        "results stats --json",
        "results set analyze_budget:50000:42000:no_history 7 --json",
        "results export BudgetTrackerAgent",
        "results forget analyze_budget:60000:42000:no_history --dry-run --json",
        "results forget --all --yes --json",
    ),
    "sessions": _steps(
        "sessions list --json",
        "sessions list --state cancelled --json",
        "sessions show kept --json",
        "sessions stats kept --json",
        "sessions get kept first:results --json",
        "sessions export kept",
        "sessions invalidate kept --key first:results --dry-run --json",
        "sessions drop kept --yes --json",
        "sessions sweep --yes --json",
    ),
    "dead-letters": _steps(
        Step("dead-letters list --json", keep={"letter": "letters.0.sequence"}),
        "dead-letters list --agent NapAgent --user bob --json",
        Step("dead-letters groups --json", hides=("bound",)),
        Step(
            "dead-letters show {letter} --json",
            hides=("frames", "place", "traceback"),
        ),
        "dead-letters redrive {letter} --dry-run --json",
        "dead-letters redrive {letter} --yes --json",
        Step(
            "dead-letters list --json",
            until='"generation": 2',
            keep={"again": "letters.0.sequence"},
        ),
        "dead-letters purge {again} --dry-run --json",
        "dead-letters purge {again} --yes --json",
    ),
    "schedules": _steps(
        "schedules add NapAgent take_nap -p ms=4 --at 2099-12-24T18:00 --id once "
        "--dry-run",
        "schedules add NapAgent take_nap -p ms=4 --at 2099-12-24T18:00 --id once "
        "--user bob --yes --json",
        "schedules add NapAgent take_nap -p ms=5 --cron '0 3 * * *' "
        "--time-zone Europe/Berlin --id nightly --yes --json",
        "schedules add --pipeline naps.toml -p ms=6 --every 6h --missed skip "
        "--id naps --yes --json",
        "schedules list --json",
        "schedules list --user bob --json",
        "schedules show once --json",
        "schedules show naps --json",
        "schedules pause nightly --json",
        "schedules resume nightly --json",
        "schedules run once --json",
        "schedules remove naps --json",
    ),
    "webhooks": _steps(
        "webhooks list --json",
        "webhooks list --state waiting --json",
        "webhooks show msg_2 --json",
        "webhooks retry msg_2 --json",
        "webhooks remove msg_2 --json",
    ),
    "k8s": _steps("k8s agent budget --image registry.example/budget:1.0"),
    "agents": _steps(
        Step("agents list --json", hides=("tasks",)),
        "agents show NapAgent --json",
        "agents check budget --json",
        Step("agents try budget", stdin="limit 50k, spent 42,000\nthe same with 45k\n"),
    ),
    "requests": _steps(
        "requests show long --json",
        "requests show nosuch --json",
        "requests cancel long --json",
        f"requests ask {_QUESTION} --json",
    ),
    "conversations": _steps(
        "conversations list --user bob --json",
        "conversations list --json",
        Step("conversations show talk --json", hides=("time",)),
        "conversations show nosuch --json",
    ),
}


#: Nouns whose commands stand above under another word.
_SHOWN_AS = {"requests": "ask", "pipelines": "pipeline"}


def _examples_of(noun: str) -> tuple[Step, ...]:
    """Return the examples of the operations of *noun*, in their order, as steps."""
    return tuple(
        Step(f"{line}{' --yes' if one['confirm'] else ''} --json")
        for one in operations_of(noun)
        for line in one["examples"]
    )


#: By the first word of the commands. A noun for which nothing is written is shown by the examples of its operations.
SCENARIO: dict[str, tuple[Step, ...]] = _WRITTEN | {
    noun: _examples_of(noun)
    for noun in sorted({one["noun"] for one in load_manifest()["operations"]})
    if noun not in _WRITTEN and noun not in _SHOWN_AS
}
