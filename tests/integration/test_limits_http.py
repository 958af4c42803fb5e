"""Limits and budgets over HTTP, by whom they may be read and changed; and the file that a supervisor applies."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import Limits, Payer, read_limits
from tasklore.contracts.callers import Role
from tasklore.contracts.errors import ConfigurationError, MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.budgets.store import Budgets
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.limits_file import apply_limits_file
from tasklore.supervisor.watches import LimitWatch
from tests.http_client import ask
from tests.integration.http_stand import Stand, http_stand

LIMITS = {
    "limits": [{"name": "acme", "tenant": "acme", "usd": "20", "every": "day"}],
    "time_zone": "Europe/Berlin",
}


@pytest.fixture
async def guarded(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[tuple[Stand, dict[str, Any]]]:
    """Serve the API with keys: the headers of each by name."""
    path = tmp_path / "keys.json"
    headers = {}
    made: list[tuple[str, Role, str | None]] = [
        ("ask", "ask", None),
        ("ann", "admin", "ann"),
        ("read", "read", None),
        ("admin", "admin", None),
    ]
    for name, role, user in made:
        headers[name] = {
            "Authorization": f"Bearer {make_key(path, name, (role,), user)}"
        }
    async with http_stand(servers, redis, keys=KeyRing(path)) as found:
        yield found, headers


async def test_limits_are_changed_over_http(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    """What has its default is left out of them; over another version it is 409; a faulty field is named."""
    stand, headers = guarded
    before = await ask(stand.url, "GET", "/v1/limits", headers=headers["read"])
    assert before.body == {"version": 0, "who": "", "when": "", "limits": {}}
    body = {"version": 0, "limits": LIMITS}
    made = await ask(stand.url, "PUT", "/v1/limits", body, headers["admin"])
    assert (made.status, made.body["concerns"]) == (200, 2)
    shown = (await ask(stand.url, "GET", "/v1/limits", headers=headers["read"])).body
    assert (shown["version"], shown["who"], shown["limits"]) == (1, "key:admin", LIMITS)
    assert {name: made.body[name] for name in shown} == shown
    conflict = await ask(stand.url, "PUT", "/v1/limits", body, headers["admin"])
    assert (conflict.status, conflict.body["type"]) == (
        409,
        "urn:tasklore:problem:version",
    )
    wrong = {"limits": {"limits": [{"name": "a", "usd": -1, "every": "day"}]}}
    refused = await ask(stand.url, "PUT", "/v1/limits", wrong, headers["admin"])
    assert (refused.status, refused.body["problems"][0]["where"]) == (
        422,
        "limits.limits.0.usd",
    )
    path = "/v1/limits/named/acme"
    edit = {"usd": "30", "version": 1}
    raised = await ask(stand.url, "PATCH", path, edit, headers["admin"])
    [change] = raised.body["difference"]["limits"]
    assert (change["before"]["usd"], change["after"]["usd"]) == ("20", "30")
    gone = await ask(stand.url, "DELETE", f"{path}?version=1", headers=headers["admin"])
    assert gone.status == 409
    path = "/v1/limits/versions"
    back = await ask(stand.url, "POST", f"{path}/1/restore", {}, headers["admin"])
    assert (back.status, back.body["version"], back.body["limits"]) == (200, 3, LIMITS)
    listed = await ask(stand.url, "GET", path, headers=headers["read"])
    assert [one["version"] for one in listed.body["versions"]] == [3, 2, 1]
    for who in ("ask", "ann", "read"):
        denied = await ask(stand.url, "PUT", "/v1/limits", body, headers[who])
        assert denied.status == 403


async def test_a_budget_is_shown_over_http(
    guarded: tuple[Stand, dict[str, Any]], redis: Redis
) -> None:
    """With accounts, periods, and one tree."""
    stand, headers = guarded
    await Budgets(redis).change(read_limits(LIMITS), "ada")
    path = "/v1/budget?days=2&by=model"
    shown = (await ask(stand.url, "GET", path, headers=headers["read"])).body
    assert (shown["version"], shown["by"], len(shown["periods"])) == (1, "model", 1)
    account = shown["accounts"][0]
    assert (account["limit"], account["left"]) == ("acme", 20.0)
    assert shown["at"].endswith("Z")
    await redis.hset(keys.budget("tree", "root"), mapping={"calls": 3})
    path = "/v1/budget?tree=root"
    tree = (await ask(stand.url, "GET", path, headers=headers["read"])).body
    assert (tree["tree"]["calls"], tree["accounts"], tree["periods"]) == (3, [], [])
    for wrong in ("days=63", "by=hour", "tree=a%20b", "limit=0"):
        path = f"/v1/budget?{wrong}"
        refused = await ask(stand.url, "GET", path, headers=headers["read"])
        assert refused.status == 422
    assert (await ask(stand.url, "GET", "/v1/budget")).status == 401


async def test_a_supervisor_applies_a_file_and_names_a_faulty_field(
    redis: Redis, tmp_path: Path
) -> None:
    """A change by hand stands until the file differs."""
    path = tmp_path / "limits.toml"
    budgets = Budgets(redis)
    path.write_text("[[limits]]\nname = 'a'\nat_once = 1\n", "utf-8")
    await apply_limits_file(redis, path, _spawn_none)
    await apply_limits_file(redis, None, _spawn_none)
    assert (await budgets.read()).who == "file:limits.toml"
    await budgets.change(read_limits({}), "ada")
    await apply_limits_file(redis, path, _spawn_none)
    assert (await budgets.read()).version == 2
    path.write_text("[[limits]]\nname = 'a'\nat_once = 2\n", "utf-8")
    await apply_limits_file(redis, path, _spawn_none)
    assert (await budgets.read()).version == 3
    path.write_text("[[limits]]\nname = 'a'\nat_once = 0\n", "utf-8")
    with pytest.raises(
        ConfigurationError,
        match=r"TASKLORE_LIMITS_FILE: .*limits.toml': limit 'a'.at_once",
    ):
        await apply_limits_file(redis, path, _spawn_none)
    with pytest.raises(ConfigurationError, match="No such file"):
        await apply_limits_file(redis, tmp_path / "none.toml", _spawn_none)


def _spawn_none(work: Coroutine[Any, Any, None]) -> None:
    work.close()
    raise AssertionError("the store is there")


async def test_a_file_is_applied_when_a_store_that_was_away_is_back(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor starts without it."""
    monkeypatch.setattr("tasklore.supervisor.limits_file._AGAIN_S", 0.01)
    path = tmp_path / "limits.toml"
    spawned = []
    looks = []
    real = Budgets.apply_file
    path.write_text("[[limits]]\nname = 'a'\nat_once = 1\n", "utf-8")

    async def apply(self: Budgets, limits: Limits, name: str) -> int | None:
        looks.append(name)
        if len(looks) < 3:
            raise MemoryUnavailable("away")
        return await real(self, limits, name)

    monkeypatch.setattr(Budgets, "apply_file", apply)
    await apply_limits_file(redis, path, spawned.append)
    [later] = spawned
    await asyncio.wait_for(later, 30)
    assert ((await Budgets(redis).read()).version, len(looks)) == (1, 3)


async def test_metrics_have_the_fullest_account_of_each_limit(redis: Redis) -> None:
    """Of days and months also by a name of their own; a limit is the only label."""
    tenants = {"name": "tenants", "tenant": "*", "tokens": 100, "every": "day"}
    calls = {"name": "calls", "at_once": 4}
    await Budgets(redis).change(read_limits({"limits": [tenants, calls]}), "ada")
    window = read_limits({"limits": [tenants]})
    watch = LimitWatch(Budgets(redis))
    [account] = window.accounts_of("m", Payer(tenant="x"), datetime.now(UTC))
    for tenant, spent in (("x", 30), ("y", 70)):
        place = keys.budget("account", f"tenants;tenant={tenant}")
        await redis.hset(place, mapping={"s": spent, "u": 15, "win": account.window})
        await redis.zadd(place + ":queue", {"waiter": 2**42})
        await redis.zadd(keys.budget("accounts"), {place: 1})
    metrics = Metrics("test")
    metrics.watch_limits(watch.used, watch.spent, watch.unconfirmed, watch.waiting)
    assert b"tasklore_limit_used_ratio{" not in metrics.render()
    await watch.look()
    shown = metrics.render().decode()
    for line in (
        'tasklore_limit_used_ratio{limit="tenants"} 0.85',
        'tasklore_limit_used_ratio{limit="calls"} 0.0',
        'tasklore_budget_used_ratio{limit="tenants"} 0.85',
        'tasklore_limit_unconfirmed_ratio{limit="tenants"} 0.15',
        'tasklore_limit_waiting_calls{limit="tenants"} 2.0',
    ):
        assert f"\n{line}\n" in shown
    assert 'tasklore_budget_used_ratio{limit="calls"}' not in shown
