"""The ASGI application: HTTP with static files, and the websocket."""

from __future__ import annotations

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "par_project.settings")
django_application = get_asgi_application()

from conversations.websocket.routing import websocket_application  # noqa: E402  needs the apps
from par_project.static import serve_static  # noqa: E402

http_application = serve_static(django_application)
application = ProtocolTypeRouter({"http": http_application, "websocket": websocket_application})
