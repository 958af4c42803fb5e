"""`tasklore bootstrap --ledger 2`, as people run it: beside processes of 0.2, twice, and broken off in the middle."""

import asyncio
import json

import pytest

from tasklore.commands.ledger import migrate_ledger
from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.migration import Migration
from tasklore.memory.long_term.index import EntryIndex
from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import PATIENCE_S
from tests.acceptance.system import System
from tests.acceptance.test_beside_0_2 import DOUBLER_OF_0_2, PYTHON_OF_0_2


@pytest.mark.parametrize("words", [("worker", DOUBLER_OF_0_2), ("supervisor",)])
def test_it_is_refused_beside_a_process_of_0_2(
    own_system: System, words: tuple[str, ...]
) -> None:
    """It names the connection, and nothing is moved."""
    own_system.installed(PYTHON_OF_0_2, *words).ready()
    done = own_system.command("bootstrap", "--ledger", "2")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "may be of 0.2, which knows nothing of layout 2" in done.stderr
    assert "run this again" in done.stderr

    async def layout() -> str:
        async with valkey.connect(own_system.servers.redis_url) as client:
            return await Migration(client).layout()

    assert asyncio.run(layout()) == "1"


def test_what_is_to_be_dropped_needs_the_move(own_system: System) -> None:
    """Else streams would be made, and the wish be passed over."""
    done = own_system.command("bootstrap", "--drop-unknown")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().endswith("is only valid with --ledger 2; add that")


async def test_it_is_broken_off_and_run_again_and_again(
    own_system: System,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What it prints says how far it is; behind the last step every list is complete."""
    for name, value in own_system.environment.items():
        monkeypatch.setenv(name, value)
    async with valkey.connect(own_system.servers.redis_url) as client:
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        task = TaskName("Scout", "0199-eeee")
        body = json.dumps({"task_id": task, "agent_id": task.agent_id})
        await ledger.accept(task, 1, body.encode())
        remembered = keys.ltm_pattern("Scout").replace("*", "v1:0123456789abcdef")
        await client.set(remembered, b"{}")

        broken = asyncio.create_task(migrate_ledger(drops_unknown=False, settled_s=30))
        printed = ""
        async with asyncio.timeout(PATIENCE_S):
            while not printed:
                await asyncio.sleep(0.01)
                printed = capsys.readouterr().out
        # As Ctrl-C does.
        broken.cancel()
        with pytest.raises(asyncio.CancelledError):
            await broken
        assert await Migration(client).layout() == "prepared"
        assert printed == "In 30 s every process reads both layouts.\n"

        stranger = own_system.servers.redis_url
        async with valkey.Redis.from_url(stranger, client_name="tasklore-old") as old:
            await old.ping()
            with pytest.raises(ConfigurationError, match="tasklore-old"):
                await migrate_ledger(drops_unknown=False, settled_s=0)

        assert await migrate_ledger(drops_unknown=False, settled_s=0) == 0
        assert capsys.readouterr().out.splitlines() == [
            "In 0 s every process reads both layouts.",
            "In 0 s every process makes new entries in layout 2.",
            "1 entries are moved",
            "1 cached results, and all schedules, are listed",
            "The ledger has layout 2: 1 entries were moved. From here on no process of 0.2 may start.",
        ]
        assert await EntryIndex(client, deadline_s=PATIENCE_S).agents() == ["Scout"]
        assert await client.exists(keys.entry(task)) == 1
        assert await migrate_ledger(drops_unknown=False, settled_s=0) == 0
        said = capsys.readouterr().out
        assert said == "The ledger has layout 2 already.\n"
