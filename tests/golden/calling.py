"""How the HTTP API answers each case of its document, on one system in which there is one thing of each kind."""

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx2

from tests.acceptance.test_one_users_administrator import make_things
from tests.acceptance.test_waits import Doors
from tests.golden.matrix import Case, cases
from tests.golden.normal import Normaliser
from tests.golden.seeded import CALLED, Seeded, seeded_system
from tests.servers import PATIENCE_S

_PROBLEM = "urn:tasklore:problem:"


def show_verdicts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return by operation and case how a system below *folder* answers.

    Only how a request is refused is shown, as `detail` what it says to a person.
    """
    shown: dict[str, dict[str, Any]] = defaultdict(dict)
    with seeded_system(folder, *CALLED) as system:
        # Things of the user bob and the tenant acme.
        maker = Doors(system.api, {"admin": system.keys["maker"]})
        things = asyncio.run(make_things(maker))
        served: set[str] = set()
        known = Normaliser((text, f"<{name}>") for name, text in _ids(things))
        for address in (system.api, system.operations):
            with httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
                document = client.get("/openapi.json").json()
                found = [
                    case
                    for case in cases(document, things)
                    if address == system.api or case.operation not in served
                ]
                for case in found:
                    verdict = known.value(_verdict(client, system, case))
                    shown[case.operation][case.name] = verdict
                served = set(shown)
    return dict(shown)


def _ids(things: Any) -> list[tuple[str, str]]:
    return [(name, text) for name, text in things.items() if name.endswith("_id")]


def _verdict(client: httpx2.Client, system: Seeded, case: Case) -> dict[str, Any]:
    headers = dict(case.headers)
    if case.caller is not None:
        headers["Authorization"] = f"Bearer {system.keys[case.caller]}"
    with client.stream(
        case.method, case.path, content=case.body, headers=headers
    ) as answer:
        if answer.status_code < 400:
            # A stream may have no end; which of them it is may be a matter of time.
            return {"status": "2xx"}
        told = json.loads(answer.read())
    return {"status": answer.status_code, **_read(told)}


def _read(told: Any) -> dict[str, Any]:
    """Return what is refused and why, of a problem or of an error as OpenAI has them."""
    if "error" in told:
        error = told["error"]
        where = [error["param"]] if error.get("param") else []
        return {
            "type": f"{error['type']} {error.get('code') or ''}".strip(),
            "where": where,
            "detail": error["message"],
        }
    return {
        "type": told["type"].removeprefix(_PROBLEM),
        "where": [one["where"] for one in told.get("problems", ())],
        "detail": told["detail"],
    }
