"""Changes of one page cost the same however many came before it.

A list of pending entries is read by every search of a GIN index: 56 pages of it cost 7 ms, and 4 MB may gather. And
where pages of a table have room, a row that keeps its keys is changed without touching an index.
"""

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations

INDEXES = {"evidence": ("kb_evidence_wanted", "wanted"), "canonicalpage": ("kb_pages_names", "names")}
FORWARD = [
    *(f"ALTER INDEX {name} SET (fastupdate = off)" for name, _ in INDEXES.values()),
    *(f"SELECT gin_clean_pending_list('{name}'::regclass)" for name, _ in INDEXES.values()),
    *(f"ALTER TABLE {table} SET (fillfactor = 85)" for table in ("kb_pages", "kb_nodes", "kb_evidence")),
]
BACKWARD = [
    *(f"ALTER INDEX {name} RESET (fastupdate)" for name, _ in INDEXES.values()),
    *(f"ALTER TABLE {table} RESET (fillfactor)" for table in ("kb_pages", "kb_nodes", "kb_evidence")),
]


class Migration(migrations.Migration):
    dependencies = [("knowledge_graph", "0003_order_of_walks")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(FORWARD, BACKWARD)],
            state_operations=[
                operation
                for model, (name, field) in INDEXES.items()
                for operation in (
                    migrations.RemoveIndex(model, name),
                    migrations.AddIndex(model, GinIndex(fields=[field], fastupdate=False, name=name)),
                )
            ],
        )
    ]
