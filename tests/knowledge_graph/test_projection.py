"""The difference that a change makes gives the same graph as projecting everything, whatever came before."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from apps.knowledge_graph.projection import Projected, StoredPage, project, reproject, stored_form
from apps.knowledge_graph.resolution import PageGraph, answer_of, dangling_node, question_of
from apps.knowledge_graph.values import EdgeValue, GraphValue, NodeValue, Page
from tests.knowledge_graph.pages_of_texts import SPACE, page_text, reading_of

SLUGS = ["alpha", "beta", "gamma", "alpha-beta", "b2", "plan"]
FOLDERS = ["", "modules/", "decisions/", "runbooks/"]
TITLES = ["Alpha", "The Plan", "Gamma ray"]
ALIASES = ["beta", "old plan"]
STEMS = ["alpha", "notes", "the-plan", "Gamma Ray"]
TYPES = ["module", "decision", "runbook", "project", "incident"]
TARGETS = [
    *SLUGS, *TITLES, *ALIASES, "notes", "modules/alpha", "decisions/notes", "../runbooks/the-plan", "nowhere",
    "x/gamma", "modules/Alpha", "y/old plan", "7",
]  # fmt: skip
LINKS = [
    *(f"[[{target}]]" for target in TARGETS),
    "[[uses::beta|B]]", "[n](notes.md)", "[a](../modules/alpha.md#x)", "[[ghost]] [[ghost]]",
    "[p](/decisions/notes.md)",
]  # fmt: skip

paths = st.builds(lambda folder, stem: f"{folder}{stem}.md", st.sampled_from(FOLDERS), st.sampled_from(STEMS))
links = st.lists(st.sampled_from(LINKS), max_size=4).map(" and ".join)


@st.composite
def texts(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["page"] * 8 + ["broken", "plain", "no type"]))
    body = draw(links)
    if kind == "broken":
        return f"---\nslug: {draw(st.sampled_from(SLUGS))}\ntype: module\ntitle: a: b\n---\n{body}\n"
    if kind == "plain":
        return f"# Plain\n\n{body}\n"
    if kind == "no type":
        return f"---\nslug: {draw(st.sampled_from(SLUGS))}\n---\n{body}\n"
    fields: dict[str, str] = {}
    if draw(st.booleans()):
        fields["title"] = draw(st.sampled_from(TITLES))
    if draw(st.booleans()):
        fields["aliases"] = f"[{draw(st.sampled_from(ALIASES))}]"
    for name in draw(
        st.lists(st.sampled_from(["related", "supersedes", "owners", "depends_on"]), max_size=2, unique=True)
    ):
        fields[name] = f"[{', '.join(draw(st.lists(st.sampled_from(TARGETS), min_size=1, max_size=2)))}]"
    return page_text(draw(st.sampled_from(SLUGS)), body, type=draw(st.sampled_from(TYPES)), **fields)


class MemoryGraph:
    """What a database would hold: pages, what each gave, and nothing that could be derived otherwise."""

    def __init__(self) -> None:
        self.pages: dict[uuid.UUID, Page] = {}
        self.bears: set[uuid.UUID] = set()
        self.graphs: dict[uuid.UUID, PageGraph] = {}

    def _form(self, page: Page) -> StoredPage:
        return stored_form(page, bears=page.document in self.bears)

    def claimants(self, documents: Collection[uuid.UUID], uids: Collection[str]) -> Sequence[StoredPage]:
        concerned = {*uids, *(self.pages[document].uid for document in documents if document in self.pages)}
        return [self._form(page) for page in self.pages.values() if page.uid in concerned]

    def wanting(self, names: Collection[str]) -> Collection[uuid.UUID]:
        return {d for d, graph in self.graphs.items() for row in graph.evidence if set(row.wanted) & set(names)}

    def bearing(self, names: Collection[str]) -> Sequence[StoredPage]:
        forms = [self._form(self.pages[document]) for document in self.bears]
        return [form for form in forms if set(form.names) & set(names)]

    def load(self, documents: Collection[uuid.UUID]) -> Mapping[uuid.UUID, Projected]:
        return {
            document: Projected(
                self.pages[document],
                document in self.bears,
                {question_of(row.occurrence): answer_of(row) for row in self.graphs[document].evidence},
            )
            for document in documents
            if document in self.pages
        }

    def change(self, changes: dict[uuid.UUID, Page | None]) -> int:
        result = reproject(self, changes)
        for document, graph in result.graphs.items():
            if graph is None:
                self.pages.pop(document, None)
                self.graphs.pop(document, None)
                self.bears.discard(document)
                continue
            self.pages[document] = result.pages[document]
            self.graphs[document] = graph
            (self.bears.add if graph.node else self.bears.discard)(document)
        return len(result.graphs)

    def whole(self) -> GraphValue:
        nodes: dict[str, NodeValue] = {g.node.uid: g.node for g in self.graphs.values() if g.node}
        edges: dict[str, EdgeValue] = {uid: edge for g in self.graphs.values() for uid, edge in g.edges.items()}
        for edge in edges.values():
            nodes.setdefault(edge.to_uid, dangling_node(edge.to_uid))
        return GraphValue(
            nodes,
            edges,
            {document: graph.evidence for document, graph in self.graphs.items()},
            {self.pages[document].uid: document for document in self.bears},
        )


class Edits(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.graph = MemoryGraph()
        self.files: dict[uuid.UUID, tuple[str, list[str], bool]] = {}

    def _page(self, document: uuid.UUID) -> Page | None:
        path, versions, live = self.files[document]
        return reading_of(versions[0], path, *versions[1:], live=live, document=document).page

    def _apply(self, *documents: uuid.UUID) -> None:
        self.graph.change({d: self._page(d) if d in self.files else None for d in documents})

    @rule(path=paths, text=texts())
    def write(self, path: str, text: str) -> None:
        document = next((d for d, (known, _, _) in self.files.items() if known == path), None)
        if document is None:
            document = uuid.uuid5(SPACE, f"{path} {len(self.files)} {text}")
        old = self.files.get(document, (path, [], True))[1]
        self.files[document] = (path, [text, *old], True)
        self._apply(document)

    @rule(batch=st.lists(st.tuples(paths, texts()), min_size=2, max_size=3, unique_by=lambda pair: pair[0]))
    def write_many(self, batch: list[tuple[str, str]]) -> None:
        for path, text in batch:
            self.write(path, text)

    @rule(data=st.data(), to=paths)
    def move(self, data: st.DataObject, to: str) -> None:
        if self.files and not any(path == to for path, _, _ in self.files.values()):
            document = data.draw(st.sampled_from(sorted(self.files)))
            _, versions, live = self.files[document]
            self.files[document] = (to, versions, live)
            self._apply(document)

    @rule(data=st.data())
    def trash_or_restore(self, data: st.DataObject) -> None:
        if self.files:
            document = data.draw(st.sampled_from(sorted(self.files)))
            path, versions, live = self.files[document]
            self.files[document] = (path, versions, not live)
            self._apply(document)

    @rule(data=st.data(), count=st.integers(1, 2))
    def delete(self, data: st.DataObject, count: int) -> None:
        for _ in range(min(count, len(self.files))):
            document = data.draw(st.sampled_from(sorted(self.files)))
            del self.files[document]
            self._apply(document)

    @invariant()
    def incremental_is_full(self) -> None:
        if hasattr(self, "files"):
            pages = [page for document in self.files if (page := self._page(document)) is not None]
            assert self.graph.whole() == project(pages) == project(reversed(pages))


def test_graph_fact_88_incremental_equals_full_on_values() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Edits,
        settings=settings(
            max_examples=60, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
