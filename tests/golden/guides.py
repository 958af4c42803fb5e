"""What the commands of pages need before they can be given on one system, page by page.

A page that is not named here needs nothing but the system. Each command is given as it
stands on its page, with words in capitals filled in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.acceptance.system import AGENTS, ROOT
from tests.golden.scenario import Step
from tests.golden.seeded import COMMANDED

#: Commands that are not given here, by a pattern, and why not: what is shown behind them is only demanded.
NOT_GIVEN = {
    r"make ": "takes minutes; a target has a test of its own",
    r"tasklore (up|worker)\b": "runs until it is stopped: tests/acceptance/test_up.py",
    r"python -m examples\.": "a process of its own: tests/acceptance/test_coin_world.py",
    r"tasklore doctor": "says what this machine's servers keep: tests/acceptance/test_doctor.py",
}

#: Agents that pages speak of, beside those of the commands that are frozen.
AGENTS_OF_PAGES = (
    *COMMANDED,
    str(ROOT / "examples" / "trip.py"),
    "bakery.py",
    "notes.py",
    "price.py",
    "stock.py",
    "served/greeter.py",
)
#: What `tasklore init` is called with, and where another one is whose agent is served.
PROJECT = "greeter"
SERVED = "served"


@dataclass(frozen=True)
class Block:
    """A block of code of a page, by its language and number: it is a file in the folder of the commands."""

    language: str
    number: int = 0


@dataclass(frozen=True)
class Given:
    """How one command is given: what is typed into it, and what happens before: commands, and files that are written.

    *until* is a pattern: the command is given again until it is in what it prints.
    """

    stdin: str = ""
    until: str = ""
    before: tuple[Step, ...] = ()
    writes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Guide:
    """What a page needs: files out of its blocks or by their text, and commands before it that nobody sees.

    *words* are those of its commands that stand for something, by the name under which a step before keeps it.
    """

    files: Mapping[str, Block | str] = field(default_factory=dict)
    before: tuple[Step, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Given] = field(default_factory=dict)


def _send(agent: str, task: str, *parameters: str, keep: str = "task") -> Step:
    words = " ".join(f"-p {one}" for one in parameters)
    return Step(f"tasks send {agent} {task} {words} --json", keep={keep: "task_id"})


_GREETER = """from tasklore import Agent, Parameters

agent = Agent("GreeterAgent")


class Guest(Parameters):
    \"\"\"Who comes.\"\"\"

    name: str


@agent.task(examples=("Greet Ana", "Greet Bob"))
async def greet(guest: Guest) -> str:
    \"\"\"Greet a guest.\"\"\"
    return f"Hello {guest.name}"
"""
_STOCK = tuple(
    _send("StockAgent", "look_up", f"article={name}")
    for name in ("lamp", "unicorn", "lamp")
)

#: In this order, as some pages change what others look at.
GUIDES: Mapping[str, Guide] = {
    "README.md": Guide(
        given={
            'tasklore memory search ana "what am I allergic to?"': Given(
                until="peanuts"
            ),
        },
    ),
    "docs/guide/handle-dead-letters.md": Guide(
        files={"stock.py": (AGENTS / "stock.py").read_text("utf-8")},
        before=_STOCK,
        given={
            "tasklore dead-letters groups --since 1d": Given(until="GiveUp"),
            "tasklore dead-letters purge 4 5": Given(
                before=(Step("dead-letters list --json", until='"sequence": 5'),)
            ),
        },
    ),
    "docs/guide/write-an-agent.md": Guide(files={"price.py": Block("python")}),
    "docs/guide/remember-people.md": Guide(
        before=(Step("memory forget ana --yes --json"),),
        given={
            "tasklore memory show ana": Given(until="Vegan"),
            'tasklore memory search ana "what am I allergic to?"': Given(
                until="peanuts"
            ),
        },
    ),
    "docs/guide/start-from-a-sentence.md": Guide(
        files={"bakery.py": Block("python")},
        given={
            "tasklore agents try ./bakery.py": Given(
                stdin="a lemon cake for 12 guests, ready tomorrow\nthe same for 8\n"
            )
        },
    ),
    "docs/guide/test-an-agent.md": Guide(
        files={"review.py": Block("python")},
        given={
            "tasklore agents try ./review.py": Given(stdin="double 20 euros\n"),
        },
    ),
    "docs/guide/run-a-pipeline.md": Guide(
        files={
            "notes.py": Block("python"),
            "notes.toml": Block("toml"),
            "notes/monday.txt": "Bread, salt and two lemons.\n" * 40,
            "notes/tuesday.txt": "The ferry leaves at nine.\n" * 60,
        },
        before=(
            Step(
                "pipelines run notes.toml --input folder=$PWD/letters --session run-7 "
                "--keep --json"
            ),
        ),
        words={"SESSION": "run-7"},
        given={
            "tasklore pipelines resume SESSION --file notes.toml": Given(
                writes={"letters/first.txt": "Dear Ana, the ferry leaves at nine.\n"}
            )
        },
    ),
    "docs/guide/keep-state-in-a-session.md": Guide(
        before=(
            Step(
                "pipelines run notes.toml --input folder=$PWD/notes --keep "
                "--session run-8 --json"
            ),
            Step(
                "pipelines run notes.toml --input folder=$PWD/parcels --session run-9 "
                "--json"
            ),
        ),
        words={"SESSION": "run-8"},
    ),
    "docs/guide/develop-with-reload.md": Guide(
        given={
            "tasklore agents try ./greeter/greeter.py": Given(
                stdin="how much tip for a bill of 80?\n"
            ),
        },
    ),
    "docs/guide/deploy-to-kubernetes.md": Guide(
        given={
            "tasklore k8s agent ./greeter.py --image registry.example/greeter:1.0 "
            "--most 20 --longest-s 1800": Given(writes={"greeter.py": _GREETER})
        },
    ),
    "docs/guide/wait-for-a-person.md": Guide(
        before=(
            Step(
                "ask 'transfer: label \"chairs\", amount 120' --wait 0 --request-id order "
                "--json",
                until='"approval_id".*"waits_for": "person"',
            ),
            Step(
                "approvals list --json",
                until='"question"',
                keep={"question": "approvals.0.id", "task": "approvals.0.task_id"},
            ),
        ),
        words={"QUESTION": "{question}", "TASK": "{task}"},
    ),
    "docs/guide/retry-and-give-up.md": Guide(
        before=(
            Step(
                "tasks send NapAgent take_nap -p ms=600000 --wait 0 --json",
                keep={"task": "task_id"},
            ),
        ),
        words={"TASK": "{task}"},
    ),
    "docs/guide/monitor-and-trace.md": Guide(
        before=(
            _send(
                "BudgetTrackerAgent",
                "analyze_budget",
                "budget_limit=50k",
                "spent=42000",
            ),
        ),
        words={"TASK": "{task}"},
    ),
    "docs/guide/limit-cost.md": Guide(
        files={"limits.toml": Block("toml")},
        before=(
            _send(
                "BudgetTrackerAgent", "analyze_budget", "budget_limit=50k", "spent=1"
            ),
        ),
        words={"TASK": "{task}"},
    ),
    "docs/guide/bound-runs.md": Guide(),
}
