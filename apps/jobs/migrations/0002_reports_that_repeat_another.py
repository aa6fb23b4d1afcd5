import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='same_as',
            field=models.ForeignKey(blank=True, db_index=False, help_text="A job whose report is this one's too, line by line.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='jobs.job'),
        ),
        migrations.AlterField(
            model_name='jobitem',
            name='job',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='own_items', to='jobs.job'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('same_as__isnull', False)), fields=['same_as'], name='jobs_job_same_as'),
        ),
    ]
