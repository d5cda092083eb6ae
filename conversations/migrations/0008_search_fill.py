from django.db import migrations


def fill_index(apps, schema_editor):
    """What was said before can be found, too; `manage.py rebuild_search` does the same."""
    from conversations.search import rebuild, search_index

    conversation, revision, entry = (
        apps.get_model("conversations", name) for name in ("Conversation", "Revision", "SearchEntry")
    )
    for _ in rebuild(search_index(schema_editor.connection, entry), conversation, revision):
        pass


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0007_search"),
    ]

    operations = [
        migrations.RunPython(fill_index, migrations.RunPython.noop),
    ]
