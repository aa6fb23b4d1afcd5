"""Indexes for lists that are filtered by a part of a path or title, where the server has pg_trgm.

They stand on the upper-case form, because that is what ``__icontains`` asks for. Without the extension the same queries
give the same rows by reading the table.
"""

from django.db import migrations

CREATE = """
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm') THEN
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
        CREATE INDEX repo_documents_path_part ON repo_documents USING gin (upper(path) gin_trgm_ops);
        CREATE INDEX repo_documents_title_part ON repo_documents USING gin (upper(title) gin_trgm_ops);
        CREATE INDEX repo_files_path_part ON repo_files USING gin (upper(path) gin_trgm_ops);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'pg_trgm may not be installed by this account; lists are filtered without it';
END
$$
"""
DROP = """
DROP INDEX IF EXISTS repo_documents_path_part;
DROP INDEX IF EXISTS repo_documents_title_part;
DROP INDEX IF EXISTS repo_files_path_part;
"""


class Migration(migrations.Migration):
    dependencies = [("repos", "0001_initial")]

    operations = [migrations.RunSQL(CREATE, DROP)]
