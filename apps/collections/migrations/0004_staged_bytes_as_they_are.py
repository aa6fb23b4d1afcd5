from django.db import migrations


class Migration(migrations.Migration):
    """Bytes that wait for a worker, and are dropped some days later, are not compressed: to compress and unpack them
    was a seventh of the database's work of an upload. They take twice the room meanwhile."""

    dependencies = [
        ('collections', '0003_names_of_collections_without_owner_may_repeat'),
    ]

    operations = [
        migrations.RunSQL(
            'ALTER TABLE md_staged_entries ALTER COLUMN raw SET STORAGE EXTERNAL',
            'ALTER TABLE md_staged_entries ALTER COLUMN raw SET STORAGE EXTENDED',
        ),
    ]
