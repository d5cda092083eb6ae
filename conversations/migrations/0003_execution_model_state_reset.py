from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0002_socket_ticket"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="model_state_reset",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
