"""Write the golden schema and context anew: run it on purpose, and look at what git shows."""

import json
from pathlib import Path

from tasklore.contracts.analysis.document import read_document, schema
from tasklore.memory.rendering.prompt_context import condense

here = Path(__file__).parent
example = read_document((here / "example.json").read_bytes())
(here / "AnalysisDocument.v1.json").write_text(
    json.dumps(schema(), indent=1, sort_keys=True) + "\n", "utf-8"
)
(here / "context.txt").write_text(condense(example) + "\n", "utf-8")
