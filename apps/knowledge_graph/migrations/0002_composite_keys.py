"""Keys that contain the source, and cascades that the database carries out itself."""

from django.db import migrations

TABLES = {
    # table: does it point to a page?
    "kb_pages": False,
    "kb_nodes": True,
    "kb_edges": True,
    "kb_evidence": True,
    "kb_nodes_past": True,
    "kb_edges_past": True,
    "kb_evidence_past": True,
    "kb_cross_source_references": True,
    "kb_revisions": False,
    "kb_proposal_decisions": False,
    "kb_lint_findings": True,
}


def key(table: str, name: str, columns: str, target: str, target_columns: str) -> str:
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{name} FOREIGN KEY ({columns})"
        f" REFERENCES {target} ({target_columns}) ON DELETE CASCADE"
    )


FORWARD = [
    key("kb_sources", "repository_fk", "repository_id", "repositories", "id"),
    key("kb_sources", "collection_fk", "collection_id", "md_collections", "id"),
    key("kb_pages", "repository_document_fk", "repository_document_id", "repo_documents", "id"),
    key("kb_pages", "document_fk", "document_id", "md_documents", "id"),
    *(key(table, "source_fk", "source_id", "kb_sources", "id") for table in TABLES),
    *(
        key(table, "page_fk", "source_id, page_id", "kb_pages", "source_id, id")
        for table, has_page in TABLES.items()
        if has_page
    ),
    key("kb_edges", "from_fk", "source_id, from_uid", "kb_nodes", "source_id, node_uid"),
    key("kb_edges", "to_fk", "source_id, to_uid", "kb_nodes", "source_id, node_uid"),
    key("kb_evidence", "edge_fk", "source_id, edge_uid", "kb_edges", "source_id, edge_uid"),
    *(
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_is_closed CHECK (valid_to > valid_from)"
        for table in ("kb_nodes_past", "kb_edges_past", "kb_evidence_past")
    ),
]


class Migration(migrations.Migration):
    dependencies = [("knowledge_graph", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
