from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from agent.models import AuditRecord
from conversations import sharing
from conversations.models import ShareLink
from tests.conversations.sharing.talk import SECRET, everything
from tests.factories import AdministratorFactory, UserFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/conversations/sharelink/"


def test_links_are_read_and_revoked_and_never_changed(client: Client) -> None:
    owner, staff = UserFactory(), AdministratorFactory()
    share, token = sharing.create_share(owner, everything(owner).pk)
    client.force_login(staff)
    reason = f"/admin/conversations/conversation/{share.conversation_id}/reason/"
    assert client.get(f"{LIST}{share.pk}/change/")["Location"].startswith(reason)
    client.post(reason, {"reason": "a support request"})

    for address in (LIST, f"{LIST}?q={share.conversation_id}", f"{LIST}{share.pk}/change/"):
        page = client.get(address).content.decode()
        assert f"{token[:6]}…" in page
        assert token not in page
        assert share.digest not in page
        assert SECRET not in page
    assert client.post(f"{LIST}{share.pk}/change/", {"title": "y"}).status_code == 403
    assert client.get(f"{LIST}{share.pk}/delete/").status_code == 403
    assert client.get(f"{LIST}add/").status_code == 403

    client.post(LIST, {"action": "revoke", "_selected_action": [str(share.pk)]})

    assert ShareLink.find(token) is None
    assert AuditRecord.objects.get(event="share-revoked").user == staff


def test_staff_who_may_only_look_revoke_nothing(client: Client) -> None:
    owner, staff = UserFactory(), UserFactory(is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_sharelink"))
    share, token = sharing.create_share(owner, everything(owner).pk)
    client.force_login(staff)
    assert client.get(LIST).status_code == 200

    client.post(LIST, {"action": "revoke", "_selected_action": [str(share.pk)]})

    assert ShareLink.find(token) is not None
