"""Addresses of share links."""

from __future__ import annotations

from django.urls import path

from conversations.sharing import views

urlpatterns = [
    path("s/<str:token>/", views.shared, name="shared"),
    path("s/<str:token>/attachments/<uuid:pk>", views.picture, name="shared-picture"),
    path("s/<str:token>/copy/", views.copy, name="shared-copy"),
    path("c/<uuid:pk>/share/", views.manage, name="share"),
    path("shares/<uuid:pk>/republish/", views.republish, name="share-republish"),
    path("shares/<uuid:pk>/revoke/", views.revoke, name="share-revoke"),
]
