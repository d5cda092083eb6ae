from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from agent.models import AuditRecord
from agent.runtime.exceptions import InvalidArgument, InvalidState
from conversations import sharing, store
from conversations.exceptions import ConversationNotFound, CorruptRevision, RevisionNotFound, ShareNotFound
from conversations.models import Conversation, Revision, ShareLink, User
from conversations.models.credentials import digest
from conversations.sharing import links
from tests.conversations.sharing.talk import answered, everything, go_on, said, talk
from tests.factories import ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return UserFactory()


@pytest.fixture
def conversation(owner: User) -> Conversation:
    return talk(owner, (said("One"), answered("1")), (said("Two"), answered("2")))


def soon(**delta: int) -> datetime:
    return timezone.now() + timedelta(**(delta or {"hours": 1}))


def test_only_the_digest_of_a_link_is_stored(owner: User, conversation: Conversation) -> None:
    """DESIGN 7."""
    share, token = sharing.create_share(owner, conversation.pk)

    row = ShareLink.objects.values().get()
    assert row["digest"] == digest(token)
    assert row["prefix"] == token[:6]
    assert token not in str(row)
    assert len(token) == 43
    found = ShareLink.find(token)
    assert found == share
    assert (share.revision, share.title, share.state) == (conversation.head, "A talk", "live")


@pytest.mark.parametrize("change", [str.swapcase, lambda token: token[:-1], lambda token: token + "A", lambda _: ""])
def test_almost_the_token_is_not_the_token(owner: User, conversation: Conversation, change: Any) -> None:
    share, token = sharing.create_share(owner, conversation.pk)

    assert ShareLink.find(change(token)) is None
    assert ShareLink.find(share.digest) is None
    assert ShareLink.find(str(share.pk)) is None


def test_a_link_to_an_earlier_revision_shows_that_one(owner: User, conversation: Conversation) -> None:
    first = conversation.revisions.order_by("pk")[0]

    share, _ = sharing.create_share(owner, conversation.pk, revision_id=first.public_id)

    assert share.revision == first
    assert not sharing.owned_share(owner, share.pk).up_to_date


def test_what_is_said_later_is_shown_once_it_is_published_again(owner: User, conversation: Conversation) -> None:
    share, _ = sharing.create_share(owner, conversation.pk)
    before = share.published_at
    go_on(conversation, said("Three"), answered("3"))
    store.change_conversation(owner, conversation.pk, store.Changes(title="Renamed"))
    kept = sharing.owned_share(owner, share.pk)
    assert (kept.revision_id, kept.title, kept.up_to_date) == (share.revision_id, "A talk", False)

    again = sharing.republish(owner, share.pk)

    again.refresh_from_db()
    assert (again.title, again.revision, again.digest) == ("Renamed", again.conversation.head, share.digest)
    assert again.published_at > before


def test_a_link_can_be_moved_to_a_revision_of_its_conversation_only(owner: User, conversation: Conversation) -> None:
    share, _ = sharing.create_share(owner, conversation.pk)
    first = conversation.revisions.order_by("pk")[0]
    other = talk(owner, (said("x"), answered("y")))
    assert other.head is not None

    moved = sharing.change_share(owner, share.pk, revision_id=first.public_id)
    assert (moved.revision, moved.expires_at) == (first, None)
    with pytest.raises(RevisionNotFound):
        sharing.change_share(owner, share.pk, revision_id=other.head.public_id)


def test_a_title_that_was_made_of_a_message_is_made_of_one_that_is_shown(owner: User) -> None:
    """The first message of another branch is not shown, so its words are not the title."""
    row = everything(owner)
    Conversation.objects.filter(pk=row.pk).update(title="First words of an edited message", title_by_person=False)

    share, _ = sharing.create_share(owner, row.pk)

    assert share.title == "What is there?"


def test_a_link_expires(owner: User, conversation: Conversation) -> None:
    share, token = sharing.create_share(owner, conversation.pk, expires_at=soon())
    assert ShareLink.find(token) == share

    ShareLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert ShareLink.find(token) is None
    assert sharing.owned_share(owner, share.pk).state == "expired"

    later = soon(days=2)
    assert sharing.change_share(owner, share.pk, expires_at=later).state == "live"
    assert ShareLink.find(token) == share
    assert sharing.change_share(owner, share.pk, expires_at=None).expires_at is None


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime(2100, 1, 1),  # noqa: DTZ001  no zone on purpose
    ],
)
def test_a_time_that_cannot_be_is_refused(owner: User, conversation: Conversation, moment: datetime) -> None:
    with pytest.raises(InvalidArgument):
        sharing.create_share(owner, conversation.pk, expires_at=moment)
    share, _ = sharing.create_share(owner, conversation.pk)
    with pytest.raises(InvalidArgument):
        sharing.change_share(owner, share.pk, expires_at=moment)


def test_a_revoked_link_never_works_again(owner: User, conversation: Conversation) -> None:
    share, token = sharing.create_share(owner, conversation.pk)

    assert sharing.revoke(share, owner)
    assert not sharing.revoke(share, owner)
    assert ShareLink.find(token) is None
    assert sharing.owned_share(owner, share.pk).state == "revoked"
    with pytest.raises(InvalidState):
        sharing.republish(owner, share.pk)
    with pytest.raises(InvalidState):
        sharing.change_share(owner, share.pk, expires_at=None)


def test_the_links_of_a_closed_account_rest(owner: User, conversation: Conversation) -> None:
    _, token = sharing.create_share(owner, conversation.pk)

    User.objects.update(is_active=False)
    assert ShareLink.find(token) is None
    User.objects.update(is_active=True)
    assert ShareLink.find(token) is not None


def test_links_go_with_their_conversation_and_with_their_owner(owner: User, conversation: Conversation) -> None:
    _, token = sharing.create_share(owner, conversation.pk)
    sharing.create_share(owner, talk(owner, (said("x"), answered("y"))).pk)

    store.delete_conversation(owner, conversation.pk)
    assert ShareLink.find(token) is None
    assert ShareLink.objects.count() == 1
    owner.delete()
    assert not ShareLink.objects.exists()


def test_an_empty_conversation_and_a_damaged_one_are_not_shared(owner: User, conversation: Conversation) -> None:
    with pytest.raises(InvalidState):
        sharing.create_share(owner, ConversationFactory(owner=owner).pk)
    Revision.objects.update(context=[{"broken": True}])
    with pytest.raises(CorruptRevision):
        sharing.create_share(owner, conversation.pk)
    assert not ShareLink.objects.exists()


def test_somebody_elses_link_and_conversation_look_like_none(owner: User, conversation: Conversation) -> None:
    """R125."""
    stranger = UserFactory()
    share, _ = sharing.create_share(owner, conversation.pk)
    for refused in (
        lambda: sharing.owned_share(stranger, share.pk),
        lambda: sharing.republish(stranger, share.pk),
        lambda: sharing.change_share(stranger, share.pk, expires_at=None),
        lambda: sharing.owned_share(owner, uuid4()),
    ):
        with pytest.raises(ShareNotFound):
            refused()
    with pytest.raises(ConversationNotFound):
        sharing.create_share(stranger, conversation.pk)
    assert sharing.shares_of(stranger).rows == []


def test_so_many_links_of_a_person_work_at_a_time(
    owner: User, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "LIVE_LINKS", 2)
    first, _ = sharing.create_share(owner, conversation.pk)
    second, _ = sharing.create_share(owner, conversation.pk)
    with pytest.raises(InvalidState, match="2 links"):
        sharing.create_share(owner, conversation.pk)

    ShareLink.objects.filter(pk=first.pk).update(expires_at=timezone.now())
    sharing.create_share(owner, conversation.pk)
    with pytest.raises(InvalidState):  # an expired link that is to work again counts, too
        sharing.change_share(owner, first.pk, expires_at=None)
    sharing.revoke(second, owner)
    sharing.change_share(owner, first.pk, expires_at=None)


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_count_one_another(
    owner: User, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "LIVE_LINKS", 3)
    together, refused = Barrier(6), []

    def make() -> None:
        together.wait(10)
        try:
            sharing.create_share(owner, conversation.pk)
        except InvalidState as error:
            refused.append(error)
        connection.close()

    threads = [Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (ShareLink.objects.count(), len(refused)) == (3, 3)


def test_lists_are_paged_and_cost_one_query_each(
    owner: User, conversation: Conversation, django_assert_num_queries: Any
) -> None:
    other = talk(owner, (said("x"), answered("y")))
    made = [sharing.create_share(owner, pk)[0].pk for pk in [conversation.pk, other.pk] * 3]

    with django_assert_num_queries(1):
        first = sharing.shares_of(owner, limit=4)
        assert [row.state for row in first.rows] == ["live"] * 4
        assert [row.up_to_date for row in first.rows] == [True] * 4
    rest = sharing.shares_of(owner, limit=4, before=first.older)
    assert [row.pk for row in (*first.rows, *rest.rows)] == made[::-1]
    assert (first.is_newest, rest.is_newest, rest.older) == (True, False, None)
    assert [row.pk for row in sharing.shares_of(owner, conversation=other).rows] == made[1::2][::-1]


def test_what_is_shared_and_when_it_ended_is_audited_by_ids_only(owner: User, conversation: Conversation) -> None:
    share, token = sharing.create_share(owner, conversation.pk)
    sharing.republish(owner, share.pk)
    staff = UserFactory(is_staff=True)
    sharing.revoke(share, staff)
    sharing.revoke(share, staff)

    rows = list(AuditRecord.objects.order_by("pk"))
    assert [row.event for row in rows] == ["share-created", "share-published", "share-revoked"]
    assert [row.user for row in rows] == [owner, owner, staff]
    assert {row.conversation_id for row in rows} == {conversation.pk}
    assert all(row.payload == {"id": str(share.pk)} for row in rows)
    assert token not in str([row.payload for row in rows])
