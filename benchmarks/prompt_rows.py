"""How long the prompts of finder and editor are together, for one fact that rules cannot read.

No tokenizer is installed here, and none is fetched: a token is taken for four characters, as in English prose. Numbers
and paths have fewer, so the finder's own estimate, which rather says too many, and the words stand beside it. The
schemas that go along are counted apart: providers bill them, though nobody sees how they are spelled for the model.
"""

import json

from workers.agents.memory_worker.prompting import tokens_of

from benchmarks.profiles import Profile
from benchmarks.table import Row
from runtime.llm import Llm, LlmSettings
from tests.llm_double import Asked, ScriptedLlm
from tests.memory_bench import BenchContext, batch, documents, draft_of, fact
from workers.agents.memory_worker.runner import edit

#: Leaves of the documents that are asked about: a few things told, a lot, and more than one page.
SIZES = (12, 60, 400)
#: Characters that are taken for one token.
PER_TOKEN = 4
#: What a prompt is allowed to be, both together, for documents of ordinary size.
ALLOWED = 900
TOLD = "Omelettes are what User reaches for on slow mornings"
DISHES = ("Pasta with basil", "Walnut bread", "Miso soup", "Scrambled eggs", "Lentil curry", "Apple pie")


async def measure(_profile: Profile) -> list[Row]:
    """Return a row for each size of document."""
    return [await _row(size) for size in SIZES]


async def _row(size: int) -> Row:
    likes = [f"{DISHES[number % len(DISHES)]}, recipe {number}" for number in range(size)]
    bodies = documents(food__likes=likes)
    async with ScriptedLlm(_answer) as model, Llm(LlmSettings(base_url=model.base_url, api_key="none")) as llm:
        # The context takes whoever answers.
        context = BenchContext(llm, draft_of(bodies))
        rulings = await edit(batch(fact(TOLD)), context)
    asked = model.requests
    prompts = [one.system + one.user for one in asked]
    characters, words = sum(map(len, prompts)), sum(len(prompt.split()) for prompt in prompts)
    schemas = sum(len(json.dumps(one.schema, separators=(",", ":"))) for one in asked)
    tokens, with_schemas = characters / PER_TOKEN, (characters + schemas) / PER_TOKEN
    at_most = sum(map(tokens_of, prompts))
    return Row(
        f"prompts of finder and editor, {size} leaves",
        compared=f"{tokens:,.0f} tokens of {ALLOWED}, {with_schemas:,.0f} with schemas; "
        f"{at_most:,} at most; {words:,} words",
        how=f"{len(asked)} questions ({rulings[0].outcome}), 4 characters a token; whole document of one kind shown",
    )


def _answer(asked: Asked) -> dict[str, object]:
    if asked.schema_name == "Found":
        locations = [{"fact": 1, "path": f"food.likes[{number}]", "relevance": "eggs"} for number in (0, 3)]
        return {"reasoning": "eggs", "locations": locations, "suggested_insert_path": ["food.likes"]}
    new = {"operation": "insert", "path": "food.likes", "display": "Omelettes"}
    return {"reasoning": "new", "decision": "proceed", "edits": [new]}
