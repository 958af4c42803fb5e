"""Documents in YAML, read by the parser in C."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]


def documents(text: str) -> list[Any]:
    return [one for one in yaml.load_all(text, Loader=yaml.CSafeLoader) if one]
