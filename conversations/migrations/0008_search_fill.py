from django.db import migrations


class Migration(migrations.Migration):
    """What was said before was made findable here; 0012 does that, and anew where it was done."""

    dependencies = [
        ("conversations", "0007_search"),
    ]

    operations = []
