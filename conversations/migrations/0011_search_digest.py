from django.db import migrations, models


def detach(apps, schema_editor):
    """What SQLite has beside the table must be made again after it has rebuilt the table."""
    from conversations.search import search_index

    for statement in search_index(schema_editor.connection).detached:
        schema_editor.execute(statement)


def attach(apps, schema_editor):
    from conversations.search import search_index

    for statement in search_index(schema_editor.connection).attached:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0010_share_links"),
    ]

    operations = [
        migrations.RunPython(detach, attach),
        migrations.RemoveConstraint(
            model_name="searchentry",
            name="search_entry_once",
        ),
        migrations.AddField(
            model_name="searchentry",
            name="digest",
            field=models.CharField(blank=True, default="", max_length=32),
        ),
        migrations.AddConstraint(
            model_name="searchentry",
            constraint=models.UniqueConstraint(
                fields=("conversation", "message_id", "digest"), name="search_entry_once"
            ),
        ),
        migrations.RunPython(attach, detach),
    ]
