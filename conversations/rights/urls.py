"""Addresses of the page “Your data”."""

from __future__ import annotations

from django.urls import path

from conversations.rights import views

urlpatterns = [
    path("data/", views.data, name="account-data"),
    path("data/tokens/", views.create_token, name="account-token"),
    path("data/tokens/<uuid:pk>/revoke/", views.revoke_token, name="account-token-revoke"),
    path("data/sessions/end/", views.end_other_sessions, name="account-sessions-end"),
    path("data/sessions/<uuid:pk>/end/", views.end_session, name="account-session-end"),
    path("data/conversations/delete/", views.delete_conversations, name="account-conversations-delete"),
    path("close/", views.close_account, name="account-close"),
]
