"""The commands and their options; what a command does is imported only when it runs."""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Context, Exit, Option, Typer, echo
from typer.main import get_command

from tasklore.commands.doctor import app as doctor_app
from tasklore.commands.operations.commands import PlainCommand
from tasklore.commands.operations.entries import load_manifest
from tasklore.commands.operations.nouns import make_command, make_noun
from tasklore.commands.options import (
    SETTLED,
    Command,
    CommandGroup,
    Json,
    example,
    show_help_alone,
)
from tasklore.commands.running import run

#: Every command that is no operation of a noun; those of nouns are joined in `make_root`.
app = Typer(**SETTLED)

#: Nouns in the order of the help, each with its sentence; `sentences_of_nouns` has all of them.
GROUPS = {
    "requests": "Ask in plain language, and look up an answer later.",
    "tasks": "List tasks, send and cancel them, and show their results.",
    "conversations": "Show conversations and their turns.",
    "pipelines": "Run pipelines, show their runs, resume failed ones.",
    "sessions": "Show sessions, export and import them, remove stale entries.",
    "projects": "Record and search decisions and standards of a project.",
    "agents": "List agents, check what their cards understand, and retire one.",
    "analyses": "Have agents analyse the responses of a story, and give their findings to the next prompt.",
    "worlds": "Send messages to agents in a simulation.",
    "stories": "Check stories, load them, show their state.",
    "results": "Inspect, replace and delete cached results.",
    "memory": "Store facts about a person, show their memory, undo edits.",
    "limits": "Show and change limits on models and on runs; changes take effect "
    "within a second, without a restart.",
    "budget": "Show what is left of each limit, and the spending.",
    "console": "Open the web console.",
    "approvals": "List and answer approvals: questions of tasks to a person.",
    "dead-letters": "Show dead letters (tasks that failed for good), send them again, "
    "or delete them.",
    "schedules": "Schedule tasks and pipelines, once or repeatedly (cron).",
    "stream-tokens": "Create tokens by which a browser can open one stream without an "
    "API key.",
    "webhooks": "Show webhooks that were not delivered, send them again, or remove "
    "them.",
    "k8s": "Print manifests for Kubernetes.",
}
#: Nouns with commands that are written by hand: the `app` of each lies in `tasklore.commands.{noun}.app`, a dash of the
#: noun being `_`. Beside operations of the same noun it holds those that are local.
WRITTEN = frozenset(
    {
        "pipelines",
        "agents",
        "analyses",
        "stories",
        "memory",
        "limits",
        "k8s",
    }
)

Agents = Annotated[
    list[str] | None,
    Option(
        "--agents",
        metavar="REF",
        help="Agents to run, repeatable; default: all that are installed.",
    ),
]
References = Annotated[
    list[str] | None,
    Argument(
        metavar="REF",
        help="A module (my_agents.greeter), a file (./greeter.py), an installed agent.",
    ),
]


_front = Typer(
    name="tasklore",
    epilog=example(
        "tasklore demo",
        "tasklore up  # ask in another terminal",
        'tasklore ask "limit 50k, spent 42000: how is my budget?"',
    ),
    **SETTLED,
)


@_front.callback(invoke_without_command=True)
def front(
    context: Context,
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.")
    ] = False,
    direct: Annotated[
        bool,
        Option(
            "--direct",
            help="Run the command in this process, directly on NATS and Valkey, as an "
            "operator; needs no API and no key.",
        ),
    ] = False,
) -> None:
    """Task queue for agents: ask in plain language; results are cached and reused.

    Exit codes: 0 done, 1 the task failed or was not finished in time, 2 unusable input,
    3 a server cannot be reached, 4 a clarification is needed, 5 no agent can handle the
    request.
    """
    if direct:
        from tasklore.commands.operations.target import DIRECT_VARIABLE

        # Whichever command follows finds the API by it.
        os.environ[DIRECT_VARIABLE] = "1"
    if version:
        from importlib import metadata

        echo(metadata.version("tasklore"))
        raise Exit
    show_help_alone(context)


@app.command(cls=Command, epilog=example("tasklore demo"))
def demo() -> int:
    """Run a demo: start everything, ask, chat, run a pipeline, analyse a story, and clean up.

    The second question is the first one in other words, and is answered from the cache;
    the pipeline fails and is resumed.
    """
    from tasklore.commands.demo.demo import demonstrate

    return run(demonstrate())


@app.command(
    cls=Command, epilog=example("tasklore up --agents ./greeter.py --data-dir ./data")
)
def up(
    agents: Agents = None,
    more: Annotated[list[str] | None, Argument(metavar="REF", hidden=True)] = None,
    data_dir: Annotated[
        Path | None,
        Option(
            "--data-dir",
            metavar="DIR",
            help="Keep data here instead of .tasklore.",
        ),
    ] = None,
    temporary: Annotated[
        bool,
        Option("--temporary", help="Discard all data at the end."),
    ] = False,
    no_memory: Annotated[
        bool,
        Option("--no-memory", help="Do not run the agents that store what people say."),
    ] = False,
    workers: Annotated[
        int, Option("--workers", metavar="N", min=1, max=64, help="Worker processes.")
    ] = 1,
) -> int:
    """Run everything on this machine until Ctrl-C.

    Starts NATS, Valkey, a supervisor, the admin API (`supervisor --operations`) and
    workers, each as a separate process. Prints one line when it is ready: `ready
    nats=... redis=... http=... api=... operations=...`, where http is the supervisor's
    health and metrics, api its HTTP API, and operations the same with an operator's
    rights. Other commands find it by DIR/endpoints.json (without --data-dir:
    .tasklore/endpoints.json). Data and ports are kept in that folder and used again by
    the next start. The memory agents are started as well (disable with --no-memory).
    With TASKLORE_NATS_URL and TASKLORE_REDIS_URL set, those servers are used and none
    is started. Crashed processes are restarted. TASKLORE_LOG_LEVEL=info makes every
    process log more.
    """
    from tasklore.commands.up.serve import serve_all

    return run(
        serve_all(
            [*(agents or ()), *(more or ())],
            data_dir,
            workers,
            is_temporary=temporary,
            keeps_memory=not no_memory,
        )
    )


@app.command(
    cls=Command,
    epilog=example(
        "tasklore worker ./greeter.py",
        "tasklore worker --config config/agent_config.json",
    ),
)
def worker(
    references: References = None,
    config: Annotated[
        Path | None,
        Option(
            "--config",
            metavar="FILE",
            help="JSON file with the settings of one agent (agent_id names it).",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        Option(
            "--slots",
            metavar="N",
            min=1,
            max=4096,
            help="Concurrent tasks of each agent.",
        ),
    ] = None,
    reload: Annotated[
        bool,
        Option(
            "--reload",
            help="Restart when a Python file of the agents changes; for development.",
        ),
    ] = False,
) -> int:
    """Serve agents until SIGTERM or Ctrl-C.

    Prints `ready http=...`, the address of its health and metrics, once tasks are
    taken; logs go to stderr. A file may disable the result cache ("enable_ltm_cache":
    false); every other field in it is a setting of the agent.
    """
    if reload:
        from tasklore.commands.up.reload import serve_reloading

        return run(serve_reloading(references or [], config, slots))
    from tasklore.commands.up.serve import serve_worker

    serve_worker(references or [], config, slots)
    return 0


@app.command(
    cls=Command,
    epilog=example("tasklore supervisor", "tasklore supervisor --operations"),
)
def supervisor(
    operations: Annotated[
        bool,
        Option(
            "--operations",
            help="Serve the admin API instead, with the credentials of an operator; "
            "accepts no requests in plain language.",
        ),
    ] = False,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C.

    Prints `ready http=...`, the address of its health and metrics, once requests are
    taken, and before that `api http=...`, where its HTTP API is; logs go to stderr.
    With --operations that is the address of the admin API (TASKLORE_OPERATIONS_HOST and
    TASKLORE_OPERATIONS_PORT): the whole API, including what needs more rights than a
    supervisor has. Do not expose it by an ingress.
    """
    from tasklore.commands.up.serve import serve_operations, serve_supervisor

    if operations:
        serve_operations()
    else:
        serve_supervisor()


@app.command(
    cls=Command, epilog=example("tasklore bootstrap budget memory switchboard")
)
def bootstrap(
    references: References = None,
    agent_ids: Annotated[
        list[str] | None,
        Option(
            "--agent-id",
            metavar="ID",
            help="An agent whose code is not installed here, repeatable.",
        ),
    ] = None,
    wait: Annotated[
        float,
        Option(
            "--wait",
            metavar="S",
            min=0,
            max=3600,
            help="Seconds to wait for a server to start.",
        ),
    ] = 120.0,
    ledger: Annotated[
        int | None,
        Option(
            "--ledger",
            metavar="2",
            min=2,
            max=2,
            help="Only migrate the ledger to layout 2, as an operator; this cannot be "
            "undone.",
        ),
    ] = None,
    drop_unknown: Annotated[
        bool,
        Option(
            "--drop-unknown",
            help="With --ledger, drop tasks whose agent is unknown.",
        ),
    ] = False,
) -> int:
    """Create the NATS streams, buckets and consumers for a deployment, once (needs admin credentials).

    For servers on which workers and supervisors may create nothing
    (TASKLORE_PROVISION=never there). Safe to repeat: existing objects are left as they
    are, or adjusted to the settings; other differences are listed, and it ends with 2.
    """
    if ledger is not None:
        from tasklore.commands.ledger import migrate_ledger

        return run(migrate_ledger(drops_unknown=drop_unknown))
    if drop_unknown:
        from tasklore.contracts.errors import InvalidInput

        raise InvalidInput("--drop-unknown is only valid with --ledger 2; add that")
    from tasklore.commands.bootstrap import bootstrap as make_everything

    return run(make_everything(references or [], agent_ids or [], wait))


@app.command(
    "api-key",
    cls=Command,
    epilog=example("tasklore api-key shop --role ask --user alice --file keys.json"),
)
def api_key(
    name: Annotated[
        str,
        Argument(metavar="NAME", help="Name of the key; rate limits count by it."),
    ],
    roles: Annotated[
        list[str] | None,
        Option(
            "--role",
            metavar="ROLE",
            help="ask, read, messages, approve, operate or admin (all roles), "
            "repeatable; default: ask.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        Option("--user", metavar="ID", help="The only user that it may act for."),
    ] = None,
    tenant: Annotated[
        str | None,
        Option(
            "--tenant",
            metavar="NAME",
            help="Tenant whose budgets its tasks use; without it they may name any.",
        ),
    ] = None,
    approves: Annotated[
        list[str] | None,
        Option(
            "--approves",
            metavar="NAME",
            help="A role, such as finance, in which it answers; repeatable.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        Option(
            "--file",
            metavar="FILE",
            help="File of the keys; default: TASKLORE_API_KEYS_FILE.",
        ),
    ] = None,
) -> None:
    """Create an API key and print it, once; only its hash is stored.

    A supervisor reloads the file when it changes. Revoke a key by removing its entry.
    """
    from tasklore.commands.api_keys import print_new_key

    print_new_key(
        name,
        roles=roles or (),
        user=user,
        file=file,
        approves=approves or (),
        tenant=tenant,
    )


@app.command(cls=Command, epilog=example("tasklore init greeter"))
def init(
    name: Annotated[
        str,
        Argument(metavar="NAME", help="Name of the project and its folder."),
    ],
) -> None:
    """Create a project: agent, test, pyproject.toml, Dockerfile and Kubernetes manifests.

    Prints the next steps. Existing files are not overwritten.
    """
    from tasklore.commands.init.project import write_project

    write_project(name)


app.command(
    cls=Command,
    epilog=example(
        "tasklore doctor", "tasklore doctor --monitor http://127.0.0.1:8222 --strict"
    ),
)(doctor_app.doctor)


@app.command(cls=Command, epilog=example("tasklore config"))
def config(as_json: Json = False) -> None:
    """Print every setting, its unit and where its value comes from.

    Secrets are masked. Settings are environment variables; docs/reference/settings.md
    describes each.
    """
    from tasklore.commands.configuration import print_settings

    print_settings(as_json=as_json)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore completion bash > ~/.local/share/bash-completion/completions/tasklore",
        "tasklore completion fish > ~/.config/fish/completions/tasklore.fish",
    ),
)
def completion(
    shell: Annotated[str, Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the shell completion script (commands, options, enum values).

    The script is static and starts no process; print it again after an upgrade.
    """
    from tasklore.commands.completion import print_completion

    print_completion(shell, make_root())


def make_root() -> CommandGroup:
    """Return the command with everything below it, of which nothing is made before it is called."""
    makers: dict[str, Callable[[], Any]] = {}
    sentences: dict[str, str] = {}
    for info in app.registered_commands:
        function = info.callback
        assert function is not None, "a command without a function"  # noqa: S101
        name = info.name or function.__name__
        makers[name] = partial(_make_own, info)
        sentences[name] = _first_sentence(function.__doc__ or "")
    makers["api"] = PlainCommand
    sentences["api"] = PlainCommand.sentence
    for entry in load_manifest()["operations"]:
        name, _, option = entry["shortcut"].partition(" ")
        if name and not option and name not in makers:
            makers[name] = partial(make_command, entry, name)
            sentences[name] = entry["help"]
    for noun, sentence in sentences_of_nouns().items():
        if noun in makers:
            # A command of this name that is written by hand stays until its noun has taken its place.
            continue
        makers[noun] = partial(_make_noun, noun, sentence)
        sentences[noun] = sentence
    root: Any = get_command(_front)
    root.offer(makers, sentences)
    return cast("CommandGroup", root)


def sentences_of_nouns() -> dict[str, str]:
    """Return each noun with its sentence, in the order of the help; one without its own is told by its verbs."""
    verbs: dict[str, list[str]] = {}
    for entry in load_manifest()["operations"]:
        verbs.setdefault(entry["noun"], []).append(entry["verb"])
    return GROUPS | {
        noun: f"{', '.join(own).capitalize()} {noun.replace('-', ' ')}."
        for noun, own in verbs.items()
        if noun not in GROUPS
    }


def _make_own(info: Any) -> Any:
    alone = Typer(**SETTLED)
    alone.registered_commands.append(info)
    return get_command(alone)


def _make_noun(noun: str, sentence: str) -> CommandGroup:
    if noun not in WRITTEN:
        return make_noun(noun, sentence, None)
    module = import_module(f"tasklore.commands.{noun.replace('-', '_')}.app")
    local: Any = get_command(module.app)
    local.name = noun
    return make_noun(noun, sentence, local)


def _first_sentence(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())
