"""Names by what they begin with, and triples without compression: they are read by the thousand and hardly shrink."""

from django.db import migrations, models
from django.db.models.functions import Upper


class Migration(migrations.Migration):
    dependencies = [("repos", "0005_code_file_dates")]

    operations = [
        migrations.AddIndex(
            model_name="codenode",
            index=models.Index("repository", Upper("name"), name="code_nodes_begin"),
        ),
        migrations.RunSQL(
            "ALTER TABLE code_triples ALTER COLUMN entries SET STORAGE EXTERNAL",
            "ALTER TABLE code_triples ALTER COLUMN entries SET STORAGE EXTENDED",
        ),
    ]
