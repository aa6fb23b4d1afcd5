from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('repos', '0007_imports_by_configuration'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='repositorydocument',
            name='repo_documents_held',
        ),
        migrations.AddIndex(
            model_name='repositorydocument',
            index=models.Index(condition=models.Q(('absence', ''), _negated=True), fields=['repository'], name='repo_documents_absent'),
        ),
    ]
