"""Addresses of the pages."""

from __future__ import annotations

from django.urls import include, path

from conversations import history, views
from conversations.moving.views import import_page
from conversations.search.views import search_page

urlpatterns = [
    path("", views.new_chat, name="new-chat"),
    path("c/<uuid:pk>/", views.conversation, name="conversation"),
    path("c/<uuid:pk>/history/", history.revisions, name="revisions"),
    path("c/<uuid:pk>/compare/", history.compare, name="compare"),
    path("c/<uuid:pk>/runs/<uuid:execution_id>/", history.place_of, name="place-of-run"),
    path("account/", include("conversations.rights.urls")),
    path("search/", search_page, name="search"),
    path("account/import/", import_page, name="import"),
    path("link/<str:token>/", views.link_landing, name="link-landing"),
    path("link/", views.link, name="link"),
    path("", include("conversations.sharing.urls")),
]
