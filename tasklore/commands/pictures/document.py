"""A document that is JSON as it stands, such as the value of an entry."""

import json
from typing import Any


def draw(view: Any) -> str:
    """Return *view* as indented JSON."""
    return json.dumps(view, indent=2, ensure_ascii=False)
