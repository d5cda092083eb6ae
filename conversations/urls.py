"""Addresses of the pages."""

from __future__ import annotations

from django.urls import include, path

from conversations import views

urlpatterns = [
    path("", views.new_chat, name="new-chat"),
    path("c/<uuid:pk>/", views.conversation, name="conversation"),
    path("account/", include("conversations.rights.urls")),
    path("link/<str:token>/", views.link_landing, name="link-landing"),
    path("link/", views.link, name="link"),
]
