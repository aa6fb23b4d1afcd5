"""Read edges in the order of walks, with all that a walk looks at in the index."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('knowledge_graph', '0002_composite_keys'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='edge',
            name='kb_edges_out',
        ),
        migrations.RemoveIndex(
            model_name='edge',
            name='kb_edges_in',
        ),
        migrations.RemoveIndex(
            model_name='edge',
            name='kb_edges_superseding',
        ),
        migrations.RemoveIndex(
            model_name='edge',
            name='kb_edges_invalidated',
        ),
        migrations.AddField(
            model_name='edge',
            name='walk_rank',
            field=models.GeneratedField(db_persist=True, expression=models.Func(output_field=models.SmallIntegerField(), template="(10 * CASE edge_type WHEN 'implements' THEN 0 WHEN 'supersedes' THEN 1 WHEN 'decision_for' THEN 2 WHEN 'depends_on' THEN 3 WHEN 'uses' THEN 4 WHEN 'affects' THEN 5 WHEN 'invalidated_by' THEN 6 WHEN 'documented_by' THEN 7 WHEN 'owned_by' THEN 8 WHEN 'related_to' THEN 9 END + CASE WHEN provenance = 'wikilink' AND type_source = 'authored' THEN 3 ELSE CASE provenance WHEN 'frontmatter_supersedes' THEN 0 WHEN 'frontmatter_superseded_by' THEN 1 WHEN 'frontmatter_typed' THEN 2 WHEN 'wikilink' THEN 5 WHEN 'frontmatter_related' THEN 4 WHEN 'inferred' THEN 6 END END)"), help_text='Rank of the type, then strength of the evidence: which of two equal weights goes first.', output_field=models.SmallIntegerField()),
        ),
        migrations.AddField(
            model_name='edge',
            name='walk_weight',
            field=models.GeneratedField(db_persist=True, expression=models.Func(output_field=models.DecimalField(decimal_places=4, max_digits=8), template="(CASE WHEN provenance = 'inferred' THEN round(weight * COALESCE((payload ->> 'confidence')::numeric, 1), 4) ELSE weight END)"), help_text='What a walk multiplies by: the weight, of a guess times its confidence.', output_field=models.DecimalField(decimal_places=4, max_digits=8)),
        ),
        migrations.AddIndex(
            model_name='edge',
            index=models.Index(models.F('source'), models.F('from_uid'), models.OrderBy(models.F('walk_weight'), descending=True), models.F('walk_rank'), models.F('to_uid'), include=('edge_type', 'provenance', 'type_source'), name='kb_edges_out'),
        ),
        migrations.AddIndex(
            model_name='edge',
            index=models.Index(models.F('source'), models.F('to_uid'), models.OrderBy(models.F('walk_weight'), descending=True), models.F('walk_rank'), models.F('from_uid'), include=('edge_type', 'provenance', 'type_source'), name='kb_edges_in'),
        ),
        migrations.AddIndex(
            model_name='edge',
            index=models.Index(fields=['source', 'from_uid', 'to_uid'], name='kb_edges_pair'),
        ),
        migrations.AddIndex(
            model_name='edge',
            index=models.Index(condition=models.Q(('edge_type', 'supersedes')), fields=['source', 'to_uid'], include=('from_uid', 'provenance'), name='kb_edges_superseding'),
        ),
        migrations.AddIndex(
            model_name='edge',
            index=models.Index(condition=models.Q(('edge_type', 'invalidated_by')), fields=['source', 'from_uid'], include=('to_uid', 'provenance'), name='kb_edges_invalidated'),
        ),
    ]
