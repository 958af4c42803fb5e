"""Write the golden schemas anew: run it on purpose, and look at what git shows."""

import json
from pathlib import Path

from tasklore.contracts.messages import MESSAGES

for name, message in MESSAGES.items():
    schema = json.dumps(message.model_json_schema(), indent=1, sort_keys=True) + "\n"
    (Path(__file__).parent / f"{name}.v1.json").write_text(schema, "utf-8")
