"""Template tags of the chat page."""

from __future__ import annotations

import json

from django import template
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.templatetags.static import static
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.simple_tag
def import_map() -> SafeString:
    """Return the body of the page's import map: the plain address of each module of ours to its hashed one."""
    hashed = getattr(staticfiles_storage, "hashed_files", {})
    modules = [name for name in hashed if name.startswith("par/") and name.endswith(".js")]
    text = json.dumps({"imports": {settings.STATIC_URL + name: static(name) for name in sorted(modules)}})
    return mark_safe(text.replace("<", "\\u003c"))  # noqa: S308  the names of our own files
