"""The pages of one source as proposers get them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray

from apps.indexing.models import IndexedSource
from apps.indexing.serving import active_profile
from apps.indexing.stores import stores_of
from apps.knowledge_graph.models import GraphSource, Node
from apps.knowledge_graph.proposing.values import ProposerPage
from apps.knowledge_graph.storing.documents import load_documents
from apps.markup.parsing import parse
from apps.markup.values import Block, Decoded, ParsedDocument
from apps.repos.models_code import ChunkMention

_CODE = re.compile(rb"(`+)(?:(?!\1).)+?\1(?!`)", re.DOTALL)


def gather(graph: GraphSource) -> list[ProposerPage]:
    """All live pages that bear their slug."""
    kind, source_id = graph.source_key
    nodes = Node.objects.filter(source=graph, dangling=False).select_related("page__document").order_by("node_uid")
    live = [node for node in nodes if node.page.document is None or node.page.document.trashed_at is None]
    documents = {node.page.document_key: node for node in live}
    symbols = _symbols(kind, source_id)
    vectors = _vectors(kind, source_id)
    found: list[ProposerPage] = []
    for document in load_documents(kind, sorted(documents)):
        node = documents[document.id]
        parsed = parse(Decoded(document.text, "utf-8"), document.path, settings.COGRAPH.markup)
        found.append(
            ProposerPage(
                node.node_uid,
                node.node_type,
                node.label,
                tuple(node.page.header["aliases"]),
                document.id,
                tuple(prose(parsed)) if isinstance(parsed, ParsedDocument) else (),
                symbols.get(document.id, {}),
                vectors.get(document.id),
            )
        )
    return sorted(found, key=lambda page: page.uid)


def prose(parsed: ParsedDocument) -> Iterator[tuple[int, str]]:
    """Paragraph by paragraph, with its first line: the body without code, links, headings, comments and tags."""
    raw = bytearray(parsed.text.encode("utf-8", "surrogatepass"))
    starts = [0]
    for line in bytes(raw).split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    spans = [(0, parsed.body_start_byte), *parsed.hidden_spans, *parsed.tag_spans, *parsed.removed_spans]
    spans += [(link.start_byte, link.end_byte) for link in parsed.links if link.origin != "frontmatter"]
    spans += [(block.start_byte, block.end_byte) for block in _code(parsed.blocks)]
    spans += [(starts[each.start_line - 1], starts[each.end_line]) for each in parsed.heading_tree]
    for start, end in spans:
        # A mark that is neither word nor blank, so that no name spans what was taken out.
        raw[start:end] = bytes(0x0A if byte == 0x0A else 0x01 for byte in raw[start:end])
    text = bytes(raw)
    text = _CODE.sub(lambda match: re.sub(rb"[^\n]", b"\x01", match[0]), text)
    number = 1
    for paragraph in text.split(b"\n\n"):
        stripped = paragraph.lstrip(b"\n")
        first = number + len(paragraph) - len(stripped)
        place = first
        for part in stripped.split(b"\n"):
            if part.strip(b" \t\x01"):
                yield place, part.decode("utf-8", "replace")
            place += 1
        number += paragraph.count(b"\n") + 2


def _code(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.kind in ("fence", "code"):
            yield block
        yield from _code(block.children)


def _symbols(kind: str, source_id: UUID) -> dict[UUID, dict[str, str]]:
    found: defaultdict[UUID, dict[str, str]] = defaultdict(dict)
    if kind == "repository":
        rows = ChunkMention.objects.filter(repository=source_id).values_list("document", "node", "node__qualified_name")
        for document, node, name in rows.distinct():
            found[document][str(node)] = name
    return found


def _vectors(kind: str, source_id: UUID) -> dict[UUID, NDArray[np.float32]]:
    """Mean of each document's chunk vectors, brought to length 1."""
    profile = active_profile()
    found: dict[UUID, NDArray[np.float32]] = {}
    if profile is None:
        return found
    for store in stores_of(kind):
        entry = IndexedSource.objects.filter(store=store.name, source_id=source_id).first()
        if entry is None or store.block != "docs":
            continue
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT c.{store.document_column}, avg(v.embedding)::text FROM {store.table} c"  # noqa: S608
                " JOIN indexing_vector v ON v.profile_id = %s AND v.number = %s AND v.hash = c.embed_hash"
                f" AND v.generation = %s WHERE c.{store.source_column} = %s GROUP BY 1",
                [profile.pk, entry.number, entry.generation, source_id],
            )
            for document, text in cursor.fetchall():
                vector = np.fromstring(text.strip("[]"), sep=",", dtype=np.float32)
                length = float(np.linalg.norm(vector))
                if length > 0:
                    found[document] = vector / length
    return found
