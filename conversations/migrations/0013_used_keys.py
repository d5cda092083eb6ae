from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import migrations, models
from django.utils import timezone

BATCH = 500
KEPT = timedelta(days=1)


def note_starts(apps: Any, schema_editor: Any) -> None:
    """Note the ids of the last day's starts among the keys that are used."""
    request = apps.get_model("conversations", "IdempotentRequest")
    starts = apps.get_model("conversations", "Execution").objects.filter(created_at__gt=timezone.now() - KEPT)
    wanted = starts.order_by("pk").values_list("user_id", "request_id", "request_digest", "conversation_id")
    rows = [
        request(user_id=user, key=key, digest=digest, about=conversation) for user, key, digest, conversation in wanted
    ]
    request.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    schema_editor.connection.check_constraints([request._meta.db_table])  # or no index can be made in this transaction


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0012_search_fill_digest"),
    ]

    operations = [
        migrations.AddField(
            model_name="idempotentrequest",
            name="about",
            field=models.UUIDField(blank=True, db_index=True, null=True),
        ),
        migrations.RunPython(note_starts, migrations.RunPython.noop, elidable=True),
    ]
