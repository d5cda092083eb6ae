"""The pages of a link, as browsers without scripts see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.utils import timezone

from agent.models import AgentProfile
from agent.runtime.messages import ReasoningBlock, TextBlock
from conversations import attachments, sharing, store
from conversations.models import Conversation, RevisionKind, ShareLink, User
from conversations.sharing.snapshots import PAGE
from tests.conversations.attachments.files import stored_in
from tests.conversations.sharing.talk import PIXEL, SECRET, answered, called, everything, go_on, message, said, talk
from tests.factories import AgentProfileFactory, UserFactory
from tests.pages import body

pytestmark = pytest.mark.django_db

WRONG = ["x" * 43, "A", "%00" * 3 + "A", "é" * 43, "x" * 2000, "%2e%2e"]


@pytest.fixture
def owner() -> User:
    return UserFactory(email="owner-of-it@example.org", first_name="Ottilie", username="ottilie")


@pytest.fixture
def reader(client: Client) -> User:
    person = UserFactory()
    client.force_login(person)
    return person


def share(conversation: Conversation, **more: Any) -> tuple[ShareLink, str]:
    made, token = sharing.create_share(conversation.owner, conversation.pk, **more)
    return made, f"/s/{token}/"


def as_text(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def key_of(html: str) -> str:
    found = re.search(r'name="key" value="([0-9a-f-]{36})"', html)
    assert found is not None
    return found[1]


def link_of(response: HttpResponse) -> str:
    found = re.search(r'value="http://testserver(/s/[\w-]{43}/)"', response.content.decode())
    assert found is not None
    return found[1]


def test_anybody_reads_what_was_said_and_nothing_else(client: Client, owner: User) -> None:
    """Reasoning, arguments, results, model state, prompts, other branches, unsaved turns, labels, tags, the owner."""
    _, address = share(everything(owner))

    page = body(client, address)

    shown = as_text(page)
    for text in ("What is there?", "There is much .", "And this?", "look_up", "fetch", "Guide"):
        assert text in shown, text
    assert re.findall(r'class="tool"[^>]* data-status="([a-z]+)"', page) == ["done", "unknown"]
    assert "<strong>much</strong>" in page
    for hidden in (SECRET, "owner-of-it", "Ottilie", "ottilie", PIXEL, "Arguments", "Result</summary>"):
        assert hidden not in page, hidden
    assert not re.search(r"<(script|form|button|input)\b", page)


def test_the_page_is_the_same_for_everybody_and_asks_for_no_cookie(
    client: Client, owner: User, django_assert_num_queries: Any
) -> None:
    """Three queries for everybody: the link, the light rows of the path and its bodies."""
    _, address = share(talk(owner, *[(said(f"Q{n}"), *called(), answered(f"A{n}")) for n in range(5)]))
    with django_assert_num_queries(3):
        stranger = client.get(address)
    client.force_login(owner)
    with django_assert_num_queries(3):
        signed_in = client.get(address)

    assert stranger.content == signed_in.content
    assert not stranger.cookies
    assert not signed_in.cookies
    assert "Cookie" not in signed_in.get("Vary", "")


def test_the_page_is_kept_by_nobody_and_tells_nobody_where_one_came_from(client: Client, owner: User) -> None:
    _, address = share(everything(owner))
    for response in (client.get(address), client.head(address), client.get("/s/unknown/")):
        assert response["X-Robots-Tag"] == "noindex, nofollow"
        assert response["Referrer-Policy"] == "no-referrer"
        assert {"no-store", "private"} <= {each.strip() for each in response["Cache-Control"].split(",")}
        assert response["X-Frame-Options"] == "DENY"
        policy = response["Content-Security-Policy"]
        assert "script-src 'none'" in policy
        assert "form-action 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
    assert '<meta name="robots" content="noindex, nofollow">' in body(client, address)
    assert client.head(address).content == b""
    assert client.post(address).status_code == 405


def test_links_that_lead_nowhere_all_answer_the_same(client: Client, owner: User) -> None:
    row = talk(owner, (said("x"), answered("y")))
    expired, expired_address = share(row, expires_at=timezone.now() + timedelta(hours=1))
    ShareLink.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    revoked, revoked_address = share(row)
    sharing.revoke(revoked, owner)
    deleted = talk(owner, (said("x"), answered("y")))
    _, deleted_address = share(deleted)
    store.delete_conversation(owner, deleted.pk)
    closed = UserFactory()
    _, closed_address = share(talk(closed, (said("x"), answered("y"))))
    User.objects.filter(pk=closed.pk).update(is_active=False)

    unknown = client.get("/s/unknown/")
    assert unknown.status_code == 404
    for address in (expired_address, revoked_address, deleted_address, closed_address, f"/s/{expired.pk}/"):
        response = client.get(address)
        assert (response.status_code, response.content) == (404, unknown.content), address
        assert response.headers.keys() == unknown.headers.keys()


@pytest.mark.parametrize("token", WRONG)
def test_guesses_find_nothing(client: Client, owner: User, token: str) -> None:
    share(talk(owner, (said("x"), answered("y"))))
    assert client.get(f"/s/{token}/").status_code in (400, 404)


def test_later_turns_are_not_shown_until_published_again(client: Client, owner: User) -> None:
    row = talk(owner, (said("One"), answered("Uno")))
    made, address = share(row)
    go_on(row, said("Two"), answered("Dos"))
    assert "Dos" not in body(client, address)

    sharing.republish(owner, made.pk)

    assert "Dos" in body(client, address)


def test_what_a_model_wrote_is_cleaned(client: Client, owner: User) -> None:
    hostile = "<script>alert(1)</script> [x](javascript:alert(1)) ![p](https://example.org/p.png)"
    _, address = share(talk(owner, (said(hostile), answered(hostile)), title="</title><script>"))

    page = body(client, address)

    assert "<script" not in page
    assert 'href="javascript:' not in page
    assert 'src="https://example.org' not in page


def test_a_long_conversation_is_paged_by_turns(client: Client, owner: User, django_assert_num_queries: Any) -> None:
    turns = [(said(f"Question {n}."), *called(), answered(f"Answer {n}.")) for n in range(PAGE)]
    _, address = share(talk(owner, *turns))
    with django_assert_num_queries(3):
        first = body(client, address)

    count = 4  # of four messages each
    assert f"Page 1 of {count}" in first
    pages = [body(client, f"{address}?page={n}") for n in range(1, count + 1)]
    shown = " ".join(map(as_text, pages))
    assert [f"Question {n}." in shown and f"Answer {n}." in shown for n in range(PAGE)] == [True] * PAGE
    assert 'data-status="unknown"' not in "".join(pages)
    for nonsense in ("0", "-1", "x", "²", "9" * 400, ""):
        assert body(client, f"{address}?page={nonsense}") in (pages[0], pages[-1])


def test_a_snapshot_without_anything_to_show_says_so(client: Client, owner: User) -> None:
    _, address = share(talk(owner, (message("assistant", ReasoningBlock(text=SECRET)),)))
    assert "nothing in it that could be shown" in body(client, address)


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[None]:
    """A storage of the test's own."""
    with stored_in(tmp_path / "attachments"):
        yield


@pytest.mark.usefixtures("stored")
def test_a_reader_goes_on_with_an_own_copy(client: Client, owner: User, reader: User) -> None:
    row = everything(owner)
    _, address = share(row)
    form = body(client, f"{address}copy/")

    response = client.post(f"{address}copy/", {"key": key_of(form)})

    copied = Conversation.objects.exclude(pk=row.pk).get()
    assert (response.status_code, response["Location"]) == (302, f"/c/{copied.pk}/")
    assert (copied.owner, copied.agent, copied.title, copied.tags) == (reader, row.agent, "A talk", [])
    revisions = list(copied.revisions.order_by("pk"))
    assert [each.kind for each in revisions] == [RevisionKind.IMPORT] * 2
    assert [each.model_state for each in revisions] == [None, None]
    assert [len(each.context) for each in revisions] == [3, 3]
    context = store.load_context(copied, copied.head)
    assert SECRET not in str(context.to_wire())
    assert PIXEL not in str(context.to_wire())
    (kept,) = copied.attachments.all()
    assert attachments.pictures_in(context.messages) == {kept.pk}
    assert {block.type for message in context.messages for block in message.blocks} == {"text", "image"}
    assert "There is" in body(client, f"/c/{copied.pk}/")
    store.check_messages(context.messages)
    assert isinstance(context.messages[0].blocks[0], TextBlock)


def test_the_same_form_makes_one_copy_and_a_new_one_another(client: Client, owner: User, reader: User) -> None:
    _, address = share(talk(owner, (said("x"), answered("y"))))
    key = key_of(body(client, f"{address}copy/"))
    places = {client.post(f"{address}copy/", {"key": key})["Location"] for _ in range(3)}
    assert len(places) == 1
    assert reader.conversations.count() == 1

    client.post(f"{address}copy/", {"key": key_of(body(client, f"{address}copy/"))})
    assert reader.conversations.count() == 2


@pytest.mark.parametrize("key", ["", "nonsense", "\x00"])
def test_a_form_of_somebody_elses_making_is_refused(client: Client, owner: User, reader: User, key: str) -> None:
    _, address = share(talk(owner, (said("x"), answered("y"))))
    assert client.post(f"{address}copy/", {"key": key}).status_code == 400
    _, other_address = share(talk(owner, (said("x"), answered("y"))))
    used = str(uuid4())
    client.post(f"{address}copy/", {"key": used})
    assert client.post(f"{other_address}copy/", {"key": used}).status_code == 400
    assert reader.conversations.count() == 1


def test_strangers_sign_in_first_and_come_back(client: Client, owner: User) -> None:
    _, address = share(talk(owner, (said("x"), answered("y"))))
    for known in (address, "/s/unknown/"):
        for response in (client.get(f"{known}copy/"), client.post(f"{known}copy/", {"key": str(uuid4())})):
            assert response.status_code == 302
            assert response["Location"] == f"/accounts/login/?next={known}copy/"
    assert Conversation.objects.count() == 1


def test_a_copy_is_made_by_the_form_of_the_page_only(owner: User) -> None:
    _, address = share(talk(owner, (said("x"), answered("y"))))
    client = Client(enforce_csrf_checks=True)
    client.force_login(UserFactory())
    assert client.post(f"{address}copy/", {"key": str(uuid4())}).status_code == 403


def test_a_copy_of_a_link_that_ended_meanwhile_is_not_made(client: Client, owner: User, reader: User) -> None:
    made, address = share(talk(owner, (said("x"), answered("y"))))
    key = key_of(body(client, f"{address}copy/"))
    sharing.revoke(made, owner)
    assert client.post(f"{address}copy/", {"key": key}).status_code == 404
    assert not reader.conversations.exists()


def test_a_reader_without_the_agent_goes_on_with_the_usual_one(client: Client, owner: User, reader: User) -> None:
    agent = AgentProfileFactory(name="For some")
    agent.groups.add(Group.objects.create(name="some"))
    _, address = share(talk(owner, (said("x"), answered("y")), agent=agent))
    assert "There is no agent for you" in body(client, f"{address}copy/")
    client.post(f"{address}copy/", {"key": str(uuid4())})
    assert not reader.conversations.exists()

    AgentProfileFactory(name="For all", is_default=True)
    form = body(client, f"{address}copy/")
    assert "You go on with For all" in form
    client.post(f"{address}copy/", {"key": key_of(form)})
    assert reader.conversations.get().agent == AgentProfile.objects.get(name="For all")


def test_the_owner_makes_a_link_which_is_shown_once(client: Client, owner: User) -> None:
    row = talk(owner, (said("x"), answered("y")))
    client.force_login(owner)
    page = f"/c/{row.pk}/share/"
    form = {"key": key_of(body(client, page)), "days": "7"}

    made = client.post(page, form)

    address = link_of(made)
    assert made["Cache-Control"].find("no-store") >= 0
    link = ShareLink.objects.get()
    assert link.expires_at is not None
    assert timedelta(days=6, hours=23) < link.expires_at - timezone.now() <= timedelta(days=7)
    assert link_of(client.post(page, form)) == address  # the form again, as a browser sends it on reload
    assert ShareLink.objects.count() == 1
    listed = body(client, page)
    assert f"{link.prefix}…" in listed
    assert address not in listed
    assert body(Client(), address)


def test_the_owner_updates_and_revokes_a_link(client: Client, owner: User) -> None:
    row = talk(owner, (said("x"), answered("y")))
    made, address = share(row)
    client.force_login(owner)
    page = f"/c/{row.pk}/share/"
    assert "shows everything" in body(client, page)
    go_on(row, said("More"), answered("Much more"))
    assert "Update to now" in body(client, page)

    updated = client.post(f"/shares/{made.pk}/republish/", {"next": page}, follow=True)
    assert updated.redirect_chain == [(page, 302)]
    assert "Much more" in body(Client(), address)
    revoked = client.post(f"/shares/{made.pk}/revoke/", {"next": "https://elsewhere.example/"}, follow=True)
    assert revoked.redirect_chain == [(page, 302)]
    assert "Revoked" in revoked.content.decode()
    assert Client().get(address).status_code == 404
    client.post(f"/shares/{made.pk}/republish/", {"next": page})
    assert "the link was revoked" in body(client, page).lower()


def test_somebody_elses_conversation_and_links_look_like_none(client: Client, owner: User, reader: User) -> None:
    """R125."""
    row = talk(owner, (said("x"), answered("y")))
    made, address = share(row)
    for pk in (row.pk, uuid4()):
        assert client.get(f"/c/{pk}/share/").status_code == 404
        assert client.post(f"/c/{pk}/share/", {"key": str(uuid4()), "days": ""}).status_code == 404
    for share_id in (made.pk, uuid4()):
        for verb in ("republish", "revoke"):
            assert client.post(f"/shares/{share_id}/{verb}/").status_code == 404
            assert client.get(f"/shares/{share_id}/{verb}/").status_code == 405
    assert body(Client(), address)
    assert ShareLink.objects.count() == 1


@pytest.mark.parametrize("days", ["2", "-1", "x", "1e9", "\x00"])
def test_a_lifetime_that_is_not_offered_is_refused(client: Client, owner: User, days: str) -> None:
    row = talk(owner, (said("x"), answered("y")))
    client.force_login(owner)
    assert client.post(f"/c/{row.pk}/share/", {"key": str(uuid4()), "days": days}).status_code == 400
    assert not ShareLink.objects.exists()


def test_an_empty_conversation_has_nothing_to_share(client: Client, owner: User) -> None:
    row = talk(owner)
    client.force_login(owner)
    page = f"/c/{row.pk}/share/"
    assert "Nothing has been said yet" in body(client, page)
    assert "nothing has been said yet" in client.post(page, {"key": str(uuid4()), "days": ""}).content.decode().lower()


def test_strangers_cannot_manage_links(client: Client, owner: User) -> None:
    made, address = share(talk(owner, (said("x"), answered("y"))))
    page = f"/c/{made.conversation_id}/share/"
    assert client.get(page)["Location"] == f"/accounts/login/?next={page}"
    assert client.post(f"/shares/{made.pk}/revoke/").status_code == 302
    assert body(client, address)


def test_many_links_are_listed_page_by_page(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr("conversations.sharing.views.MANAGED", 2)
    row = talk(owner, (said("x"), answered("y")))
    for _ in range(3):
        share(row)
    client.force_login(owner)
    page = f"/c/{row.pk}/share/"
    with django_assert_max_num_queries(6):
        first = body(client, page)
    older = re.search(r'href="(/c/[^"]+\?before=([0-9a-f-]{36}))"', first)
    assert older is not None
    assert UUID(older[2])
    second = body(client, older[1])
    assert (first.count('class="share-link"'), second.count('class="share-link"')) == (2, 1)
    assert body(client, f"{page}?before=nonsense").count('class="share-link"') == 2


def test_all_links_of_a_person_are_a_fragment_of_the_account_page(owner: User, rf: RequestFactory) -> None:
    first, second = (talk(owner, (said("x"), answered("y")), title=title) for title in ("First", "Second"))
    share(first)
    made, _ = share(second)
    context = {"shares": sharing.shares_of(owner, limit=1), "back": "/accounts/data/"}

    page = render_to_string("account/shares.html", context, rf.get("/"))

    assert "Second" in page
    assert "First" not in page
    assert f'href="/c/{second.pk}/share/"' in page
    assert f'action="/shares/{made.pk}/revoke/"' in page
    assert 'name="next" value="/accounts/data/"' in page
    assert f'href="/accounts/data/?shares={made.pk}"' in page


def test_who_asks_for_too_much_is_told_when_to_come_back(client: Client, owner: User, settings: Any) -> None:
    """Whoever has no account counts by address; guesses of links count as well."""
    settings.PAR = settings.PAR.model_copy(update={"requests_per_minute": 3})
    _, address = share(talk(owner, (said("x"), answered("y"))))

    def ask(*addresses: str, **headers: Any) -> list[int]:
        return [client.get(each, **headers).status_code for each in addresses]

    wanted = (address, f"{address}attachments/{uuid4()}", "/s/unknown/", address)
    answers = ask(*wanted)
    if answers == [200, 404, 404, 200]:
        answers = ask(*wanted)  # a minute began in between
    assert answers == [200, 404, 404, 429]
    response = client.get(address)
    assert 0 < int(response["Retry-After"]) <= 60
    assert "too much at once" in response.content.decode()
    assert {"no-store", "private"} <= {each.strip() for each in response["Cache-Control"].split(",")}
    assert ask(address, REMOTE_ADDR="192.0.2.7") == [200]


def test_an_address_of_the_sixth_version_counts_with_its_network(client: Client, owner: User, settings: Any) -> None:
    """A household has 2**64 of them."""
    settings.PAR = settings.PAR.model_copy(update={"requests_per_minute": 3})
    addresses = [f"2001:db8::{each}" for each in range(1, 9)]
    answers = [client.get("/s/unknown/", REMOTE_ADDR=each).status_code for each in addresses]
    assert 429 in answers
    assert client.get("/s/unknown/", REMOTE_ADDR="2001:db8:0:1::1").status_code == 404
