from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("repos", "0004_triples_of_names")]

    operations = [
        migrations.AddField(
            model_name="codefile",
            name="committed_at",
            field=models.DateTimeField(
                editable=False,
                help_text="Of the last commit that changed the file; empty until it is looked up.",
                null=True,
            ),
        ),
    ]
