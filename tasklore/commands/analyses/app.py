"""`tasklore analyses`: have agents analyse the responses of a story, and print their findings."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Context, Option, Typer

from tasklore.commands.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(
    epilog=example(
        "tasklore analyses run ./lighthouse",
        "tasklore analyses context ./lighthouse/state/agent_analysis.json --tokens 350",
    ),
    **SETTLED,
)

File = Annotated[
    str, Argument(metavar="FILE", help="An analysis document; - is stdin.")
]
Source = Annotated[
    str,
    Argument(
        metavar="FILE|STORY",
        help="A document (- is stdin), or the id of a story that was analysed.",
    ),
]
Number = Annotated[
    int | None,
    Option(
        "--response",
        metavar="N",
        min=0,
        help="The number of the response; default: the latest.",
    ),
]
Tokens = Annotated[
    int,
    Option(
        "--tokens", metavar="N", min=0, help="Maximum number of tokens (o200k_base)."
    ),
]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """Have agents analyse the responses of a story, and give their findings to the next prompt."""
    show_help_alone(context)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore analyses run ./lighthouse",
        "tasklore analyses run ./lighthouse ./lighthouse/responses/Ch2-R009.md --refresh",
        "tasklore analyses run ./lighthouse --all",
    ),
)
def run(
    folder: Annotated[
        Path,
        Argument(
            metavar="STORY_DIR",
            help="The story's folder; see docs/reference/stories.md.",
        ),
    ],
    files: Annotated[
        list[Path] | None,
        Argument(
            metavar="RESPONSE_FILE",
            help="A file such as Ch2-R009.md; default: the last one in "
            "STORY_DIR/responses.",
        ),
    ] = None,
    everything: Annotated[
        bool,
        Option(
            "--all", help="Every response in STORY_DIR/responses, the first one first."
        ),
    ] = False,
    refresh: Annotated[
        bool,
        Option(
            "--refresh",
            help="Ask every agent again, including those that have answered.",
        ),
    ] = False,
    until: Annotated[
        Literal["immediate", "all"],
        Option(
            "--until", help="Wait for what the next response needs, or for every agent."
        ),
    ] = "all",
    wait: Annotated[
        float,
        Option(
            "--wait",
            metavar="S",
            min=0,
            max=600,
            help="Seconds to wait for each response.",
        ),
    ] = 60.0,
    tokens: Tokens = 350,
    as_json: Json = False,
) -> int:
    """Have ten agents analyse a response in parallel, and print their findings and the context of the next one.

    Loads the folder first. The document is also written to
    STORY_DIR/state/agent_analysis.json, unless that file is of a later response. For a
    response that was analysed before, stored findings are returned; only agents that
    failed are asked again. The agents continue after Ctrl-C. Ends with 1 if an agent
    failed or was late, or if it took longer than --wait. Needs a system with the agents
    of stories: `tasklore up --agents tasklore.workers.agents.story`. Requires an API
    key with the role operate if API keys are enabled.
    """
    from tasklore.commands.analyses.run import AnalysisOptions, run_analysis

    options = AnalysisOptions(
        folder=folder,
        files=tuple(files or ()),
        everything=everything,
        refresh=refresh,
        until=until,
        wait_s=wait,
        tokens=tokens,
        as_json=as_json,
    )
    return run_analysis(options)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore analyses context ./lighthouse/state/agent_analysis.json --tokens 200",
        "tasklore analyses context lighthouse --response 9",
    ),
)
def context(
    source: Source, number: Number = None, tokens: Tokens = 350, as_json: Json = False
) -> None:
    """Print the context for the prompt of the next response.

    The least important lines are dropped first, and counted; alerts, critical threads
    and the characters in the scene last. Tokens are counted exactly if the extra
    `tokens` is installed, else overestimated. An argument with a slash or a dot is a
    file, and needs no server.
    """
    from tasklore.commands.analyses.views import print_context

    print_context(source, tokens, number, as_json=as_json)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore analyses show ./lighthouse/state/agent_analysis.json",
        "tasklore analyses show lighthouse",
    ),
)
def show(source: Source, number: Number = None, as_json: Json = False) -> None:
    """Show the response of a document, the findings of each agent, and their time and cost.

    An argument with a slash or a dot is a file, and needs no server.
    """
    from tasklore.commands.analyses.views import print_document

    print_document(source, number, as_json=as_json)


@app.command(
    cls=Command,
    epilog=example(
        "tasklore analyses get ./lighthouse/state/agent_analysis.json background.relationship.interactions[0].score",
        "tasklore analyses get lighthouse 'facts[\"Tobias Renn\"][0]'",
    ),
)
def get(
    source: Source,
    path: Annotated[
        str,
        Argument(metavar="PATH", help="A path in it, by short keys or long names."),
    ],
    number: Number = None,
) -> None:
    """Print the value at a place: a text as it is, anything else as JSON.

    An argument with a slash or a dot is a file, and needs no server.
    """
    from tasklore.commands.analyses.views import print_value

    print_value(source, path, number)


@app.command(
    cls=Command, epilog=example("tasklore analyses check state/agent_analysis.json")
)
def check(file: File, as_json: Json = False) -> int:
    """Print the problems of a document, each with its position; ends with 2 if there are any."""
    from tasklore.commands.analyses.views import print_check

    return print_check(file, as_json=as_json)
