"""What answers of the server are made of, whatever they are about."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A thing that the server returns or takes; unknown fields are passed over, so that a newer server does no harm."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        protected_namespaces=(),
    )


class UnknownEvent(Model):
    """An event of a stream that only newer servers send."""

    event: str
    data: Any = None
    id: str = ""


class Reported(Model):
    """A thing with the `report` of its task."""

    @property
    def result(self) -> Any:
        """The result of the task; None without a report, or where it did not complete."""
        report = getattr(self, "report", None)
        if isinstance(report, Mapping):
            return report.get("result")
        return None if report is None else report.result
