"""Limits as people and programs change them, on real processes: commands, a file of a supervisor, HTTP, metrics."""

import json
from pathlib import Path

from tests.acceptance.system import System
from tests.http_client import ask, until

FILE = "[[limits]]\nname = 'acme'\ntenant = 'acme'\nusd = 20\nevery = 'day'\n"


async def test_a_limit_is_seen_the_same_by_command_http_and_metrics(
    own_system: System, tmp_path: Path
) -> None:
    """A file holds from the start of a supervisor; a change by hand stands when the supervisor starts again."""
    file = tmp_path / "limits.toml"
    file.write_text(FILE, "utf-8")
    supervisor = own_system.supervisor(limits_file=file).ready()
    shown = json.loads(
        own_system.command("--direct", "limits", "show", "--json").stdout
    )
    assert (shown["version"], shown["who"]) == (1, "file:limits.toml")
    assert (await ask(supervisor.api, "GET", "/v1/limits")).body == shown
    await until(
        lambda: (
            'tasklore_budget_used_ratio{limit="acme"} 0.0'
            in supervisor.get("/metrics")[1]
        )
    )
    words = (
        "--tokens",
        "5000",
        "--every",
        "minute",
        "--model",
        "gpt-*",
        "--at-limit",
        "next",
        "--api",
        supervisor.api,
    )
    made = own_system.command("limits", "set", "openai", *words)
    assert (made.returncode, made.stdout.splitlines()[-1]) == (
        0,
        "Version 2 takes effect within a second.",
    )
    supervisor.kill()
    again = own_system.supervisor(limits_file=file).ready()
    body = (await ask(again.api, "GET", "/v1/limits")).body
    assert (body["version"], body["who"], body["limits"]["limits"][1]["at_limit"]) == (
        2,
        "key:local",
        "next",
    )
    budget = json.loads(
        own_system.command(
            "--direct", "budget", "--json", "--days", "2", "--by", "model"
        ).stdout
    )
    over_http = (await ask(again.api, "GET", "/v1/budget?days=2&by=model")).body
    for one in (budget, over_http):
        one.pop("at")
        for account in one["accounts"]:
            account.pop("refills_in_s")
    assert budget == over_http


async def test_every_command_on_limits_ends_with_its_code(
    own_system: System, tmp_path: Path
) -> None:
    """0 when it worked, 2 with the field and the cure for what cannot be used; the file alone needs no server."""
    file = tmp_path / "limits.toml"
    file.write_text(FILE, "utf-8")
    for *words, code, line in (
        ("check", str(file), 0, "limits.toml: 1 limit, nothing is wrong."),
        ("apply", str(file), 2, "+ acme: $20.00 a day, tenant acme, park"),
        ("apply", str(file), "--yes", 0, "Version 1 takes effect within a second."),
        ("remove", "acme", 0, "Version 2 takes effect within a second."),
        ("restore", "1", "--yes", 0, "Version 3 takes effect within a second."),
        ("history", 0, "- acme: $20.00 a day, tenant acme, park"),
        ("show", 0, "operator:"),
        ("set", "acme", "--usd", "x", 2, "--usd: "),
        ("remove", "acme", "--version", "9", 2, "version 3 of the limits holds, not 9"),
        (
            "set",
            "acme",
            "--every",
            "tree",
            2,
            "limit 'acme': what a task or tree has spent never refills",
        ),
        ("remove", "acne", 2, "did you mean 'acme'?"),
    ):
        done = own_system.command("--direct", "limits", *words)
        assert done.returncode == code, done.stderr
        assert line in done.stdout + done.stderr


def test_a_faulty_file_stops_the_start_and_names_the_field(
    own_system: System, tmp_path: Path
) -> None:
    """In the log, with the limit and the file."""
    file = tmp_path / "limits.toml"
    file.write_text(FILE.replace("20", "-20"), "utf-8")
    supervisor = own_system.supervisor(limits_file=file)
    assert supervisor.wait() == 2
    assert "TASKLORE_LIMITS_FILE: " in supervisor.log()
    assert "limit 'acme'.usd: must be greater than or equal to 1E-9" in supervisor.log()
