"""Vectors from any service with an OpenAI-compatible ``/v1/embeddings``."""

from __future__ import annotations

import email.utils
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from numpy.typing import NDArray

from apps.access.errors import Invalid
from apps.access.outbound import checked_client
from apps.access.redact import redact
from apps.indexing.composition import Embedded
from apps.indexing.embedding.arithmetic import HEADING_SHARE, blended, fingerprint, normalised, problem_with
from apps.indexing.embedding.backends import CHECK_TEXT, EmbedderUnavailable, Made, Traits, tuned

SMALLEST_BATCH = 1
TIMEOUT_SECONDS = 60.0
QUERY_SECONDS = 10.0


class Endpoint:
    """One model at one address. Batches are halved when the service says 429 or takes too long, and grow back."""

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key: str = "",
        dimension: int | None = None,
        batch_size: int = 256,
        weight: float | None = None,
        min_cosine: float | None = None,
        **_: object,
    ) -> None:
        if not url or not model:
            raise EmbedderUnavailable(
                "The endpoint needs COGRAPH_EMBEDDING__URL and COGRAPH_EMBEDDING__MODEL.", lasting=True
            )
        self.address = urlsplit(url).netloc
        self._url = url.rstrip("/") if url.rstrip("/").endswith("/embeddings") else url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = api_key
        self._dimension = dimension
        self._largest = self._batch = max(SMALLEST_BATCH, batch_size)
        self._tuning = (weight, min_cosine)
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def traits(self) -> Traits:
        if self._dimension is None:
            answer = self._one(CHECK_TEXT, TIMEOUT_SECONDS)
            if not isinstance(answer, list):
                raise EmbedderUnavailable(f"{self.address} answered something that is no list of numbers.")
            self._dimension = len(answer)
        identity = fingerprint("endpoint", self._url, self._model, self._dimension, HEADING_SHARE)
        return tuned(Traits(identity, f"{self._model} at {self.address}", self._dimension), *self._tuning)

    def documents(self, pieces: Sequence[Embedded]) -> list[Made]:
        self.traits()
        headings = sorted({piece.heading for piece in pieces if piece.heading})
        answers = self._all([piece.text for piece in pieces] + headings)
        texts, known = answers[: len(pieces)], dict(zip(headings, answers[len(pieces) :], strict=True))
        made: list[Made] = []
        for piece, answer in zip(pieces, texts, strict=True):
            heading = known.get(piece.heading)
            if isinstance(answer, str):
                made.append(Made(None, error=answer))
            elif isinstance(heading, str):
                made.append(Made(None, error=f"heading path: {heading}"))
            else:
                made.append(Made(answer if heading is None else blended(answer, heading)))
        return made

    def query(self, text: str) -> NDArray[np.float32]:
        self.traits()  # a process that only searches has not asked for the dimension yet
        answer = self._checked(self._one(text, QUERY_SECONDS))
        if isinstance(answer, str):
            raise EmbedderUnavailable(f"The endpoint answered badly: {answer}.")
        return answer

    def tokens(self, piece: Embedded) -> int | None:
        del piece
        return None

    def _all(self, texts: Sequence[str]) -> list[NDArray[np.float32] | str]:
        """A vector for each text, or why it has none."""
        found: list[NDArray[np.float32] | str] = []
        while len(found) < len(texts):
            part = texts[len(found) : len(found) + self._batch]
            try:
                answers = self._ask(part, TIMEOUT_SECONDS)
            except _WrongCount as problem:
                # Which text is whose cannot be told, so each is asked alone.
                found.extend(self._alone(part) if len(part) > 1 else [str(problem)])
                continue
            except _Refused as problem:
                if len(part) == 1:
                    found.append(str(problem))
                    continue
                found.extend(self._alone(part))
                continue
            except EmbedderUnavailable as problem:
                smaller = max(SMALLEST_BATCH, min(self._batch, len(part)) // 2)
                again = isinstance(problem, _Slow) and smaller < len(part)
                self._batch = smaller
                if again:
                    continue
                raise  # a 429 is waited for by the job, which then begins with the smaller batch
            found.extend(self._checked(answer) for answer in answers)
            self._batch = min(self._largest, self._batch * 2)
        return found

    def _alone(self, texts: Sequence[str]) -> list[NDArray[np.float32] | str]:
        found: list[NDArray[np.float32] | str] = []
        for text in texts:
            try:
                found.append(self._checked(self._ask([text], TIMEOUT_SECONDS)[0]))
            except (_WrongCount, _Refused) as problem:
                found.append(str(problem))
        return found

    def _one(self, text: str, seconds: float) -> Any:
        """The raw vector of one text. Raises EmbedderUnavailable whatever is wrong."""
        try:
            return self._ask([text], seconds)[0]
        except (_Refused, _WrongCount) as problem:
            raise EmbedderUnavailable(f"{self.address}: {problem}.", lasting=isinstance(problem, _Refused)) from None

    def _checked(self, answer: Any) -> NDArray[np.float32] | str:
        try:
            vector = np.array(answer, np.float32)
        except (TypeError, ValueError):
            return "the vector is no list of numbers"
        if vector.ndim != 1 or len(vector) != self._dimension:
            return f"the vector has {vector.size} dimensions, not {self._dimension}"
        return problem_with(vector) or normalised(vector)

    def _ask(self, texts: Sequence[str], seconds: float) -> list[Any]:
        """Raw vectors in the order of ``texts``. Raises EmbedderUnavailable when the service cannot be used now."""
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            response = self._session().post(
                self._url, json={"model": self._model, "input": list(texts)}, headers=headers, timeout=seconds
            )
        except Invalid as refusal:
            raise EmbedderUnavailable(refusal.message, lasting=True) from None
        except httpx.TimeoutException:
            raise _Slow(f"{self.address} did not answer within {seconds:.0f} seconds.") from None
        except httpx.HTTPError as problem:
            raise EmbedderUnavailable(f"{self.address} did not answer ({type(problem).__name__}).") from None
        return self._read(response, len(texts))

    def _read(self, response: httpx.Response, count: int) -> list[Any]:
        status = response.status_code
        if status == 429:
            wait = retry_after(response.headers.get("Retry-After", ""))
            raise EmbedderUnavailable(f"{self.address} asks to wait (429).", retry_after=wait)
        if status in (401, 403, 404):
            raise EmbedderUnavailable(
                f"{self.address} refuses the request ({status}): check key and model.", lasting=True
            )
        if status in (400, 413, 422):
            raise _Refused(redact(f"the endpoint refuses the text ({status})", (self._key,)))
        if status != 200:
            raise EmbedderUnavailable(f"{self.address} answered {status}.")
        try:
            data = sorted(response.json()["data"], key=lambda row: row["index"])
            answers = [row["embedding"] for row in data]
        except (ValueError, KeyError, TypeError):
            raise EmbedderUnavailable(f"{self.address} answered something that is no list of vectors.") from None
        if len(answers) != count:
            raise _WrongCount(f"the endpoint gave {len(answers)} vectors for {count} texts")
        return answers

    def _session(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                self._client = checked_client(timeout=TIMEOUT_SECONDS)
            return self._client


class _Slow(EmbedderUnavailable):
    """No answer in time: perhaps the batch was too large."""


class _Refused(Exception):
    """The service does not take this input, whoever asks."""


class _WrongCount(Exception):
    """Not as many vectors as texts."""


def retry_after(value: str) -> float:
    """Seconds that a Retry-After header asks for: a number or a date; 30 where it says nothing. At most an hour."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError):
            seconds = 30.0
    return min(3600.0, max(1.0, seconds))
