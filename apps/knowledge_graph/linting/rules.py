"""The rules KG101 to KG121 over one view of a graph (``knowledge-graph.md`` 10). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from apps.knowledge_graph.linting.values import (
    SEVERITY,
    GraphFinding,
    LintEdge,
    LintEvidence,
    LintInput,
    LintPage,
    Place,
)
from apps.knowledge_graph.naming import last_segment
from apps.knowledge_graph.resolution import fits_folder
from apps.knowledge_graph.vocabulary import FOLDERS, INVALIDATED_BY, OUT_OF_FORCE, PROJECT, SUPERSEDES
from apps.markup.anchors import match_fragment
from apps.markup.nearest import NearestNames
from apps.markup.page_names import name_key


def check(given: LintInput) -> list[GraphFinding]:
    """All findings, in the order of path, line, column and rule."""
    view = _View(given)
    found = list(given.plain)
    for rule in _RULES:
        found += rule(view)
    found.sort(key=lambda each: (each.path, each.line or 0, each.column or 0, each.rule, each.names))
    return found


class _View:
    """Look-ups that several rules share."""

    def __init__(self, given: LintInput) -> None:
        self.given = given
        self.pages = {page.id: page for page in given.pages}
        self.bearing = {page.uid: page for page in given.pages if page.bears}
        self.nodes = given.nodes
        self.edges = given.edges
        self.evidence = [row for row in given.evidence if row.page in self.pages]
        self.rows: defaultdict[str, list[LintEvidence]] = defaultdict(list)
        for row in self.evidence:
            if row.edge_uid:
                self.rows[row.edge_uid].append(row)
        self.edge = {edge.uid: edge for edge in self.edges}
        self.successors: defaultdict[str, set[str]] = defaultdict(set)
        """Page -> pages that have taken its place, by either declaration; drafts and archived ones do not count."""
        self.chained: set[frozenset[str]] = set()
        for edge in self.edges:
            if edge.edge_type in (SUPERSEDES, INVALIDATED_BY):
                old, new = (
                    (edge.to_uid, edge.from_uid) if edge.edge_type == SUPERSEDES else (edge.from_uid, edge.to_uid)
                )
                self.chained.add(frozenset((old, new)))
                if new in self.bearing and self.bearing[new].status not in ("draft", "archived"):
                    self.successors[old].add(new)

    def finding(
        self,
        rule: str,
        page: LintPage | None,
        message: str,
        *,
        row: LintEvidence | None = None,
        line: int | None = None,
        hint: str = "",
        names: str = "",
        related: Iterable[Place] = (),
    ) -> GraphFinding:
        return GraphFinding(
            rule,
            SEVERITY[rule],
            message,
            page.path if page else "",
            row.line if row else line,
            row.column if row else (1 if line else None),
            hint,
            names,
            tuple(related),
            page.document if page else None,
            page.id if page else None,
        )

    def by_target(self, rows: Iterable[LintEvidence]) -> Iterator[tuple[LintPage, list[LintEvidence]]]:
        """Rows of one page that name the same thing, in the order of the text."""
        groups: defaultdict[tuple[int, str], list[LintEvidence]] = defaultdict(list)
        for row in rows:
            groups[row.page, row.edge_uid.rpartition(">")[2] if row.edge_uid else name_key(row.target)].append(row)
        for (page, _), group in groups.items():
            group.sort(key=lambda row: (row.line, row.column))
            yield self.pages[page], group

    def others(self, page: LintPage, group: list[LintEvidence]) -> list[Place]:
        return [Place(page.path, row.line, row.raw) for row in group[1:]]


def _own_problems(view: _View) -> Iterator[GraphFinding]:
    """KG101, KG106, KG114 to KG116, KG118, KG120, KG121: seen while the page was read."""
    for page in view.given.pages:
        for problem in page.problems:
            yield GraphFinding(
                problem["rule"],
                problem["severity"],
                problem["message"],
                page.path,
                problem["line"],
                problem["column"],
                problem["hint"],
                problem["names"] or problem["message"],
                (),
                page.document,
                page.id,
                (problem["written"], problem["replacement"]) if problem["written"] else None,
            )


def _slugs(view: _View) -> Iterator[GraphFinding]:
    claims: defaultdict[str, list[LintPage]] = defaultdict(list)
    for page in view.given.pages:
        claims[page.uid].append(page)
    for uid, pages in claims.items():
        if len(pages) < 2:
            continue
        paths = sorted(page.path for page in pages)
        bearer = view.bearing.get(uid)
        for page in pages:
            if page is not bearer:
                message = f"slug {uid} stands in {', '.join(paths)}; {bearer.path if bearer else paths[0]} bears it"
                related = [Place(path) for path in paths if path != page.path]
                yield view.finding("KG102", page, message, line=1, hint="give it a slug of its own", names=uid,
                                   related=related)  # fmt: skip


def _aliases(view: _View) -> Iterator[GraphFinding]:
    bearers: defaultdict[str, set[str]] = defaultdict(set)
    for page in view.bearing.values():
        for alias in page.aliases:
            bearers[name_key(alias)].add(page.uid)
    for page in view.bearing.values():
        for alias in page.aliases:
            name = name_key(alias)
            others = sorted(bearers[name] - {page.uid})
            if name in view.bearing and name != page.uid:
                message = f"alias {alias!r} is the slug of {view.bearing[name].path}; the slug wins"
            elif others:
                message = f"alias {alias!r} is also one of {', '.join(view.bearing[uid].path for uid in others)}"
            else:
                continue
            yield view.finding("KG103", page, message, line=1, names=name)


def _projects(view: _View) -> Iterator[GraphFinding]:
    if view.bearing and not any(page.node_type == PROJECT for page in view.bearing.values()):
        yield view.finding("KG104", None, "there are pages, but no page of type project", hint="add one as the way in")
    for page in view.given.pages:
        if page.project and page.project not in view.given.source_names:
            message = f"project {page.project!r} is not this source ({view.given.source_names[0]})"
            yield view.finding("KG119", page, message, line=page.project_line or None, names=page.project)


def _targets(view: _View) -> Iterator[GraphFinding]:
    """KG105 and KG107: edges to pages that are missing, or out of force."""
    slugs = NearestNames(view.bearing)
    stems = {name_key(last_segment(path)): path for path in view.given.plain_paths}
    for page, group in view.by_target(row for row in view.evidence if row.edge_uid):
        edge = view.edge.get(group[0].edge_uid or "")
        node = view.nodes.get(edge.to_uid) if edge else None
        if edge is None or node is None:
            continue
        if node.page is None:
            hint = _hint(edge.to_uid, view, slugs, stems)
            message = f"{edge.to_uid} does not exist"
            yield view.finding("KG105", page, message, row=group[0], hint=hint, names=edge.to_uid,
                               related=view.others(page, group))  # fmt: skip
            continue
        state = "deleted" if node.deleted else node.status if node.status in OUT_OF_FORCE else ""
        if not state or page.status in OUT_OF_FORCE or frozenset((page.uid, node.uid)) in view.chained:
            continue
        newest = sorted(view.successors.get(node.uid, ()))
        hint = f"link to {', '.join(newest)}" if newest else ""
        yield view.finding("KG107", page, f"{node.uid} is {state}", row=group[0], hint=hint,
                           names=f"{node.uid} {state}", related=view.others(page, group))  # fmt: skip


def _hint(uid: str, view: _View, slugs: NearestNames, stems: dict[str, str]) -> str:
    if now := view.given.former.get(uid):
        return f"{now} was called {uid}: add aliases: [{uid}] to it"
    if uid in stems:
        return f"{stems[uid]} is no page: give it type and slug"
    nearest = slugs.find(uid)
    return f"did you mean {nearest}?" if nearest else ""


def _names(view: _View) -> Iterator[GraphFinding]:
    known = NearestNames(
        [*view.bearing, *(page.label for page in view.bearing.values())]
        + [alias for page in view.bearing.values() for alias in page.aliases]
    )
    rows = [row for row in view.evidence if row.outcome in ("ambiguous", "unresolved") and not row.problem]
    for page, group in view.by_target(rows):
        first = group[0]
        if first.outcome == "ambiguous":
            message = f"{first.target!r} may mean {', '.join(first.rivals)}"
            hint = "write the slug"
        else:
            nearest = known.find(first.target)
            message = f"{first.target!r} names no page"
            hint = f"did you mean {nearest}?" if nearest else ""
        yield view.finding("KG106", page, message, row=first, hint=hint, names=name_key(first.target),
                           related=view.others(page, group))  # fmt: skip


def _supersession(view: _View) -> Iterator[GraphFinding]:
    """KG108 and KG109."""
    for circle in _circles(view.successors):
        first = view.bearing.get(circle[0])
        message = f"these supersede each other in a circle: {', '.join(circle)}"
        related = [Place(view.bearing[uid].path) for uid in circle[1:] if uid in view.bearing]
        yield view.finding("KG108", first, message, line=1, names=" ".join(circle), related=related)
    for page in view.bearing.values():
        successors = sorted(view.successors.get(page.uid, set()) - {page.uid})
        if successors and page.status not in OUT_OF_FORCE:
            message = f"{', '.join(successors)} supersedes it, but its status is {page.status}"
            yield view.finding("KG109", page, message, line=1, hint="write status: superseded", names="in fact")
        elif page.status == "superseded" and not successors:
            message = "its status is superseded, but nothing supersedes it"
            yield view.finding("KG109", page, message, line=1, hint="add superseded_by: …", names="no successor")


def _circles(following: dict[str, set[str]]) -> list[list[str]]:
    """Groups of more than one page that reach each other (Tarjan, without recursion), each sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in sorted(following):
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = [(root, iter(sorted(following.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            at, onward = work[-1]
            other = next(onward, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    group = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        group.append(member)
                        if member == at:
                            break
                    if len(group) > 1:
                        found.append(sorted(group))
            elif other not in index:
                index[other] = low[other] = len(index)
                stack.append(other)
                on_stack.add(other)
                work.append((other, iter(sorted(following.get(other, ())))))
            elif other in on_stack:
                low[at] = min(low[at], index[other])
    return sorted(found)


def _reach(view: _View) -> Iterator[GraphFinding]:
    """KG110 and KG111."""
    onward: defaultdict[str, set[str]] = defaultdict(set)
    touched: set[str] = set()
    for edge in view.edges:
        onward[edge.from_uid].add(edge.to_uid)
        touched |= {edge.from_uid, edge.to_uid}
    reached = {page.uid for page in view.bearing.values() if page.node_type == PROJECT}
    sleeps = not reached
    waiting = list(reached)
    while waiting:
        fresh = onward[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    for page in view.bearing.values():
        if page.uid not in touched:
            yield view.finding("KG111", page, "no link leads to it or from it", line=1, names=page.uid)
        if not sleeps and page.uid not in reached:
            message = "no way of links leads from a project page to it"
            yield view.finding("KG110", page, message, line=1, names=page.uid)


def _contradictions(view: _View) -> Iterator[GraphFinding]:
    pairs: defaultdict[tuple[str, str], dict[str, LintEdge]] = defaultdict(dict)
    for edge in view.edges:
        pairs[edge.from_uid, edge.to_uid][edge.edge_type] = edge
    for (from_uid, to_uid), by_type in pairs.items():
        page = view.bearing.get(from_uid)
        if page is None:
            continue
        for other in (INVALIDATED_BY, "depends_on", "uses", "implements"):
            if SUPERSEDES in by_type and other in by_type:
                row = min(view.rows[by_type[other].uid], key=lambda each: (each.line, each.column), default=None)
                message = f"{to_uid} is named by supersedes and by {other}"
                yield view.finding("KG112", page, message, row=row, names=f"{to_uid} {other}")
        for edge in by_type.values():
            weights = {row.weight for row in view.rows[edge.uid] if row.weight is not None}
            if len(weights) > 1:
                row = min(view.rows[edge.uid], key=lambda each: (each.line, each.column))
                message = f"{edge.edge_type} {to_uid} has several weights: {', '.join(map(str, sorted(weights)))}"
                yield view.finding("KG112", page, message, row=row, names=f"{edge.uid} weights")


def _folders(view: _View) -> Iterator[GraphFinding]:
    foldered = any(page.node_type in FOLDERS and fits_folder(page.node_type, page.path) for page in view.given.pages)
    for page in view.given.pages if foldered else ():
        if not fits_folder(page.node_type, page.path):
            wanted = FOLDERS.get(page.node_type)
            where = f"a folder {wanted}" if wanted else "none of the folders of other types"
            yield view.finding("KG113", page, f"a page of type {page.node_type} belongs in {where}", line=1,
                               names=page.node_type)  # fmt: skip


def _anchors(view: _View) -> Iterator[GraphFinding]:
    for row in view.evidence:
        if not row.anchor or row.outcome not in ("edge", "self"):
            continue
        page = view.pages[row.page]
        edge = view.edge.get(row.edge_uid or "")
        target = page if row.outcome == "self" else view.bearing.get(edge.to_uid) if edge else None
        fragment = row.anchor.rpartition("#")[2]
        if target is None or fragment.startswith("^") or match_fragment(fragment, target.anchors) is not None:
            continue
        nearest = NearestNames(target.anchors).find(fragment)
        hint = f"did you mean #{nearest}?" if nearest else ""
        message = f"{target.uid} has no heading {fragment!r}"
        yield view.finding("KG116", page, message, row=row, hint=hint, names=f"{target.uid}#{fragment}")


def _selves(view: _View) -> Iterator[GraphFinding]:
    for page, group in view.by_target(row for row in view.evidence if row.outcome == "self"):
        yield view.finding("KG117", page, "it links to itself", row=group[0], names=page.uid,
                           related=view.others(page, group))  # fmt: skip


_RULES: tuple[Callable[[_View], Iterator[GraphFinding]], ...] = (
    _own_problems, _slugs, _aliases, _projects, _targets, _names, _supersession, _reach, _contradictions, _folders,
    _anchors, _selves,
)  # fmt: skip
