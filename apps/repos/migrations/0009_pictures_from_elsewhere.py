from django.db import migrations

# Pictures with an address of another host were taken for files of the repository, and so for broken links.
FORWARDS = """
UPDATE repo_document_links SET link_type = 'absolute', state = 'external', reason = '', suggestion = ''
WHERE image AND link_type = 'relative' AND href ~* '^([a-z][a-z0-9+.-]+:|//)'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('repos', '0008_index_of_absent_documents'),
    ]

    operations = [
        migrations.RunSQL(FORWARDS, migrations.RunSQL.noop),
    ]
