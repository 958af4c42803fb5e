"""The OpenAPI document is as it is frozen."""

from tests.golden.document import make_document
from tests.golden.frozen import demand_frozen, read


def test_the_document_is_as_it_is_frozen() -> None:
    """After a change: `python -m tests.golden.write`; docs/reference/changes-0.3.md explains each difference."""
    demand_frozen(make_document(), read("openapi.json"))
