"""Addresses of the site."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from conversations.api import api

# Without this the admin has a sign-in of its own, without a throttle and without a second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path(f"{settings.PAR.base_path.strip('/')}/", api.urls),
    path("", include("conversations.urls")),
]
