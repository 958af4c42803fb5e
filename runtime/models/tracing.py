"""Span attributes of a question to a language model, by the conventions for generative AI, without its text."""

from tasklore.contracts.extensions import ModelAnswer
from tasklore.runtime.models.prices import Tokens
from tasklore.runtime.tracing.spans import Value

#: Characters of a model's name, which a provider chooses.
_LONGEST_NAME = 100


def asked(role: str, provider: str, model: str) -> dict[str, Value]:
    """Return the attributes of a question that is about to be asked."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "tasklore.llm.role": role,
    }


def answered(answer: ModelAnswer, tokens: Tokens) -> dict[str, Value]:
    """Return the attributes of an answer: model, tokens and cost."""
    named: dict[str, Value] = {}
    if answer.model:
        named["gen_ai.response.model"] = answer.model[:_LONGEST_NAME]
    return named | {
        "gen_ai.usage.input_tokens": tokens.input,
        "gen_ai.usage.output_tokens": tokens.output,
        **_estimated(tokens),
    }


def _estimated(tokens: Tokens) -> dict[str, Value]:
    return {"tasklore.llm.tokens_estimated": True} if tokens.estimated else {}


def completed(
    provider: str, tokens: Tokens, first_chunk_s: float | None
) -> dict[str, Value]:
    """Return the attributes of the answer to a request of another client; *first_chunk_s* when it was streamed."""
    found: dict[str, Value] = {
        "gen_ai.provider.name": provider,
        "gen_ai.usage.input_tokens": tokens.input,
        "gen_ai.usage.output_tokens": tokens.output,
        **_estimated(tokens),
    }
    return (
        found
        if first_chunk_s is None
        else found | {"gen_ai.response.time_to_first_chunk": first_chunk_s}
    )
