"""The HTTP half of asking a model: one request by `openai.AsyncOpenAI`, imported only for the first request."""

import asyncio
import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from pydantic import BaseModel

from tasklore.contracts.extensions import ModelAnswer, ModelRequest
from tasklore.runtime.bounded_http import bound_responses
from tasklore.runtime.models.completions import read_body
from tasklore.runtime.models.settings import OPENAI_URL, LlmSettings
from tasklore.runtime.models.wire import answer_of, classify, redact

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.shared_params import ResponseFormatJSONSchema

    from tasklore.runtime.models.transport import DialectClient

#: Bytes of one response; the longest answers of models are some hundred kilobytes.
MOST_BYTES = 16 * 1024**2
#: Seconds of one response, which signs of life alone may fill; DeepSeek's server hangs up after as many.
_MOST_S = 600.0
#: Sent where a server wants no key: the client refuses to be built without one, and would look for one elsewhere.
_NO_KEY = "none"
#: Hosts of Azure's resources.
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def build_client(settings: LlmSettings, *, is_bare: bool = False) -> "AsyncOpenAI":
    """Import the client library and open nothing yet; 0.3 s of CPU or more, so call it in a thread.

    With *is_bare* answers in JSON come without what a model wrote around them.
    """
    import openai

    base_url, query = split_address(settings.base_url)
    http_client = build_http_client(base_url, is_bare=is_bare)
    key = settings.api_key.get_secret_value() if settings.api_key else _NO_KEY
    client = openai.AsyncOpenAI(
        http_client=http_client,
        api_key=key,
        base_url=base_url,
        default_query=query,
        default_headers=headers_for(base_url, key),
        # Retries and deadlines are ours: its own would multiply attempts unseen, and wait 600 s.
        max_retries=0,
        timeout=None,
    )
    # Taken from the environment otherwise, and sent to whatever server the base URL names.
    client.organization = client.project = None
    return client


def build_http_client(base_url: str = "", *, is_bare: bool = False) -> "DialectClient":
    """Return the HTTP client below each library that asks a model: its reading is bounded, for each provider."""
    from tasklore.runtime.models.transport import DialectClient

    http_client = DialectClient(is_bare=is_bare, base_url=base_url)
    bound_responses(http_client, MOST_BYTES, most_s=_MOST_S)
    return http_client


def split_address(base_url: str | None) -> tuple[str, dict[str, str]]:
    """Return the address of an API, and the query that goes with each request: Azure's `api-version`."""
    parts = urlsplit(base_url or OPENAI_URL)
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    address = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    return address, dict(parse_qsl(parts.query))


def headers_for(base_url: str, key: str) -> dict[str, str]:
    """Return the headers that a server wants beside OpenAI's: Azure takes the key of a resource in one of its own."""
    host = urlsplit(base_url).hostname or ""
    is_azure = host.endswith(_AZURE) or "/openai/deployments/" in base_url
    return {"api-key": key} if is_azure and key != _NO_KEY else {}


class OpenAiProvider:
    """Asks a server that speaks OpenAI's chat completions; the client library is imported with the first question."""

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._connecting = asyncio.Lock()
        self._client: AsyncOpenAI | None = None

    async def connect(self) -> "AsyncOpenAI":
        """Import the library, a second of CPU or less, and return its client; nothing is opened yet."""
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(build_client, self._settings)
            return self._client

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer of the server, read from whatever it sent.

        Raises:
            LlmError: the request failed; without the key in its words, or in those of its causes.
        """
        client = await self.connect()
        # Imported by then.
        import openai

        messages = [
            cast(
                "ChatCompletionMessageParam", {"role": one.speaker, "content": one.text}
            )
            for one in request.messages
        ]
        temperature = request.temperature
        try:
            response = await client.chat.completions.with_raw_response.create(
                model=request.model,
                messages=messages,
                response_format=_response_format(request.form),
                max_completion_tokens=request.max_output_tokens,
                temperature=openai.omit if temperature is None else temperature,
                reasoning_effort=openai.omit if request.reasons else "none",
            )
        except openai.OpenAIError as error:
            redact(error, client.api_key)
            host = urlsplit(str(client.base_url)).netloc.rpartition("@")[2]
            raise classify(error, request.model, host, client.api_key) from error
        return answer_of(read_body(response.content), response.headers)

    async def aclose(self) -> None:
        """Close its connections."""
        client = self._client
        self._client = None
        if client is not None:
            await client.close()


@lru_cache(maxsize=256)
def _response_format(answer: type[BaseModel]) -> "ResponseFormatJSONSchema":
    """Return *answer* as the strict JSON schema that structured outputs are asked with."""
    import openai

    function = openai.pydantic_function_tool(answer)["function"]
    return {
        "type": "json_schema",
        "json_schema": {
            "name": re.sub(r"\W", "_", answer.__name__)[:64],
            "strict": True,
            "schema": function["parameters"],
        },
    }
