from django.db import migrations
from django.db.models import Exists, OuterRef


def fill_index(apps, schema_editor):
    """Every text that was said before can be found; `manage.py rebuild_search` does the same."""
    from conversations.search import rebuild, search_index

    conversation, revision, entry = (
        apps.get_model("conversations", name) for name in ("Conversation", "Revision", "SearchEntry")
    )
    for _ in rebuild(search_index(schema_editor.connection, entry), conversation, revision):
        pass


def keep_first_texts(apps, schema_editor):
    """The index before knew one text of a message."""
    entries = apps.get_model("conversations", "SearchEntry").objects.using(schema_editor.connection.alias)
    same = entries.filter(conversation_id=OuterRef("conversation_id"), message_id=OuterRef("message_id"))
    entries.filter(Exists(same.filter(pk__lt=OuterRef("pk")))).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0011_search_digest"),
    ]

    operations = [
        migrations.RunPython(fill_index, keep_first_texts),
    ]
