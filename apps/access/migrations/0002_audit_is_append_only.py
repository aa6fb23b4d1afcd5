"""The database itself refuses to change the audit trail; only retention may delete, in a transaction that says so."""

from __future__ import annotations

from django.db import migrations

APPEND_ONLY = """
CREATE FUNCTION access_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('cograph.audit_prune', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only';
END
$$;
CREATE TRIGGER access_audit_append_only BEFORE UPDATE OR DELETE ON access_auditrecord
    FOR EACH ROW EXECUTE FUNCTION access_audit_refuse();
"""

DROP = """
DROP TRIGGER access_audit_append_only ON access_auditrecord;
DROP FUNCTION access_audit_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("access", "0001_initial")]

    operations = [migrations.RunSQL(APPEND_ONLY, DROP)]
