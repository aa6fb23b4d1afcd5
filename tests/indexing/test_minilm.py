from __future__ import annotations

import numpy as np
import pytest

from apps.indexing.composition import Embedded
from apps.indexing.embedding import local
from apps.indexing.embedding.backends import EmbedderUnavailable

CHECKS = [
    (
        "Restart the search worker after changing the embedding model.",
        14,
        [101, 23818, 1996, 3945, 7309, 2044, 5278, 1996],
        [0.004777, -0.056444, 0.050745, 0.053204, 0.013294],
    ),
    (
        "Café Zürich: naïve_token-splitting in C++17, e.g. 备份 v2.0!",
        27,
        [101, 7668, 10204, 1024, 15743, 1035, 19204, 1011],
        [-0.077048, 0.054421, 0.041715, -0.029753, 0.051801],
    ),
    (
        "The quick brown fox jumps over the lazy dog. " * 30,
        128,
        [101, 1996, 4248, 2829, 4419, 14523, 2058, 1996],
        [0.056907, -0.021917, 0.085853, 0.011444, -0.029813],
    ),
]


@pytest.mark.parametrize(("text", "tokens", "first", "head"), CHECKS)
def test_retrieval_fact_21_check_vectors(text, tokens, first, head):
    ids, _ = local.load().tokenise([text])
    assert len(ids[0]) == tokens
    assert ids[0][:8] == first
    assert local.MiniLm().query(text)[:5] == pytest.approx(head, abs=1e-4)


def test_retrieval_fact_21_heading_path_is_blended_in():
    line = "Operations > Search > Embedding"
    text = Embedded(f"{line}\n{CHECKS[0][0]}", line)
    made = local.MiniLm().documents([text])[0]
    assert made.vector is not None
    assert made.vector[:5] == pytest.approx([0.015053, -0.061891, 0.022594, 0.066162, -0.007885], abs=1e-4)
    assert np.linalg.norm(made.vector) == pytest.approx(1, abs=1e-6)


def test_retrieval_fact_21_another_model_file_does_not_start(tmp_path):
    other = tmp_path / "model.onnx"
    other.write_bytes(b"something else")
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx of the embedder is not the known file") as raised:
        local.Model(other, local.TOKENIZER)
    assert raised.value.lasting


def test_vectors_do_not_depend_on_batch_mates_and_keep_the_order():
    model = local.MiniLm()
    texts = [Embedded("word " * count, "") for count in (90, 3, 40, 1, 200)] * 4
    together = model.documents(texts)
    alone = [model.documents([text])[0] for text in texts[:5]]
    for place, made in enumerate(together):
        assert made.vector == pytest.approx(alone[place % 5].vector, abs=1e-4)
    assert [made.truncated for made in together[:5]] == [False, False, False, False, True]


def test_headings_of_a_batch_are_blended_as_alone_and_their_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(local, "KEPT_HEADINGS", 3)
    texts = [Embedded(f"Section {n % 5}\nsome words {n}", f"Section {n % 5}" if n % 4 else "") for n in range(12)]
    model = local.MiniLm()
    for _ in range(2):
        for piece, made in zip(texts, model.documents(texts), strict=True):
            [alone] = local.MiniLm().documents([piece])
            assert made.vector == pytest.approx(alone.vector, abs=1e-4)
    model.documents(texts[1:2])
    assert len(model._kept) <= 5
