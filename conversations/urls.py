"""Addresses of the pages."""

from __future__ import annotations

from django.urls import include, path

from conversations import views
from conversations.moving.views import import_page
from conversations.search.views import search_page

urlpatterns = [
    path("", views.new_chat, name="new-chat"),
    path("c/<uuid:pk>/", views.conversation, name="conversation"),
    path("account/", include("conversations.rights.urls")),
    path("search/", search_page, name="search"),
    path("account/import/", import_page, name="import"),
    path("link/<str:token>/", views.link_landing, name="link-landing"),
    path("link/", views.link, name="link"),
    path("", include("conversations.sharing.urls")),
]
