"""Our own providers, embedders and sources keep the promises that those of others are held to."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from tasklore.extensions import Embedder, ModelProvider, SecretSource
from tasklore.memory.episodes.minilm import MiniLm
from tasklore.runtime.models.client import OpenAiProvider
from tasklore.runtime.models.embeddings import Endpoint
from tasklore.runtime.models.settings import LlmSettings
from tasklore.runtime.secret_sources import SecretDirectory
from tasklore.testing.contracts import (
    EmbedderContract,
    ModelProviderContract,
    SecretSourceContract,
)
from tests import llm_double
from tests.llm_double import Asked, Canned, ScriptedLlm

#: Of the tiny model below: pieces of words, and numbers between the layers.
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##na", "word", "sushi", ".")
INNER = 8


@pytest.fixture
def model() -> Iterator[ScriptedLlm]:
    """A server that answers questions, and embeds by the digest of a text."""
    with ScriptedLlm() as server:
        server.respond = reply
        yield server


def reply(asked: Asked) -> Canned:
    """Return an answer to a question, or vectors, not of length one, of texts."""
    texts = asked.body.get("input")
    if texts is None:
        return llm_double.answer({"reasoning": "it is quoted", "word": "lantern"})
    data = [
        {"index": place, "embedding": list(hashlib.sha256(text.encode()).digest()[:8])}
        for place, text in enumerate(texts)
    ]
    return llm_double.raw(json.dumps({"data": data, "model": "m"}).encode())


class TestOpenAiProvider(ModelProviderContract):
    """Of any server that speaks OpenAI's chat completions."""

    @pytest.fixture(autouse=True)
    def _serve(self, model: ScriptedLlm) -> None:
        self.server = model

    def make(self) -> ModelProvider:
        return OpenAiProvider(LlmSettings(base_url=self.server.base_url))

    def make_unreachable(self) -> ModelProvider:
        return OpenAiProvider(LlmSettings(base_url="http://127.0.0.1:1/v1"))

    def make_refusing(self) -> ModelProvider:
        self.server.queue(llm_double.fault(401, "no such key"))
        return self.make()

    def make_busy(self) -> ModelProvider:
        self.server.queue(llm_double.rate_limited(2))
        return self.make()


class TestEndpoint(EmbedderContract):
    """Of any server that speaks OpenAI's embeddings."""

    @pytest.fixture(autouse=True)
    def _serve(self, model: ScriptedLlm) -> None:
        self.server = model

    def make(self) -> Embedder:
        return Endpoint("m", base_url=self.server.base_url, api_key=None)


class TestMiniLm(EmbedderContract):
    """With weights drawn at random, since its own are 90 MB."""

    folder: Path

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _folder(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.folder = tmp_path_factory.mktemp("minilm")
        (cls.folder / "vocab.txt").write_text("\n".join(PIECES), "utf-8")
        write_weights(cls.folder / "model.safetensors")

    def make(self) -> Embedder:
        return MiniLm(self.folder)


class TestSecretDirectory(SecretSourceContract):
    """As Kubernetes mounts them: with a newline at the end."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "secrets"
        self.folder.mkdir()

    def make(self, secrets: Mapping[str, str]) -> SecretSource:
        for name, secret in secrets.items():
            (self.folder / name).write_text(f"{secret}\n", "utf-8")
        return SecretDirectory(self.folder)


def write_weights(file: Path) -> None:
    """Write the tensors of a model of that shape, with few numbers between its layers."""
    drawn = np.random.default_rng(1)
    shapes = {
        "embeddings.word_embeddings.weight": (len(PIECES), 384),
        "embeddings.position_embeddings.weight": (256, 384),
        "embeddings.token_type_embeddings.weight": (2, 384),
        **_pair("embeddings.LayerNorm", 384),
    }
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _pair(f"{name}.attention.{part}", 384, 384)
        shapes |= _pair(f"{name}.attention.output.LayerNorm", 384)
        shapes |= _pair(f"{name}.intermediate.dense", INNER, 384)
        shapes |= _pair(f"{name}.output.dense", 384, INNER)
        shapes |= _pair(f"{name}.output.LayerNorm", 384)
    header: dict[str, object] = {}
    place = 0
    parts = []
    for name, shape in shapes.items():
        end = place + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [place, end]}
        parts.append((drawn.standard_normal(shape) * 0.1).astype("<f4").tobytes())
        place = end
    head = json.dumps(header).encode()
    file.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(parts))


def _pair(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
