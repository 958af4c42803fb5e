"""Schemas that are checked in this process, for tests of what is made of the outcome."""

from collections.abc import Mapping
from typing import Any

from tasklore.supervisor.json_schema_child import answer, describe_refusal
from tasklore.supervisor.json_schemas import JsonSchemas


class HereSchemas(JsonSchemas):
    """Checks them here."""

    async def _answer(
        self, job: Mapping[str, Any], _whose: str | None
    ) -> dict[str, str]:
        try:
            return answer(job)
        except ValueError as error:
            return describe_refusal(error)
