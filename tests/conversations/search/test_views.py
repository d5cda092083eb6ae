"""The search page, as a browser without scripts sees it."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from conversations.models import User
from conversations.search.views import SHOWN
from tests.conversations.search.said import conversation, message, say
from tests.factories import AgentProfileFactory, UserFactory
from tests.pages import body

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return UserFactory.create()


@pytest.fixture
def signed_in(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def test_strangers_are_sent_to_the_sign_in_page(client: Client) -> None:
    response = client.get("/search/?q=cat")
    assert (response.status_code, response["Location"]) == (302, "/accounts/login/?next=/search/%3Fq%3Dcat")


def test_every_page_leads_to_the_search(signed_in: Client) -> None:
    page = body(signed_in, "/")
    assert 'action="/search/"' in page
    assert 'name="q"' in page


def test_a_hit_shows_where_and_what_and_leads_there(signed_in: Client, ada: User) -> None:
    row = conversation(ada, "Of cats", tags=["pets"], pinned=True)
    revision = say(row, message("what do <b>cats</b> eat & drink?"))
    page = body(signed_in, "/search/?q=cats")
    assert "what do &lt;b&gt;<mark>cats</mark>&lt;/b&gt; eat &amp; drink?" in page
    assert f'href="/c/{row.pk}/?revision={revision.public_id}">Of <mark>cats</mark></a>' in page
    assert f'href="/c/{row.pk}/">Of <mark>cats</mark></a>' in page
    assert all(words in page for words in ("You ·", "Title ·", "· Pinned", "· pets"))


def test_without_a_query_it_says_what_can_be_found(signed_in: Client) -> None:
    page = body(signed_in, "/search/")
    assert "Finds titles" in page
    assert "autofocus" in page


def test_nothing_found_is_said_with_a_way_out_of_the_filters(signed_in: Client, ada: User) -> None:
    say(conversation(ada), "cat")
    page = body(signed_in, "/search/?q=dog+%26+%3Cb%3E")
    assert "Nothing was found for <strong>dog &amp; &lt;b&gt;</strong>" in page
    assert "without filters" not in page
    page = body(signed_in, "/search/?q=cat&pinned=yes")
    assert "Nothing was found" in page
    assert 'href="?q=cat">Search without filters' in page


def test_filters_narrow_and_stay_in_the_form(signed_in: Client, ada: User) -> None:
    agent = AgentProfileFactory.create(slug="vet", name="The vet")
    AgentProfileFactory.create(name="Never used")
    say(conversation(ada, agent=agent, tags=["pets"]), "first cat")
    say(conversation(ada, archived=True), "second cat")
    page = body(signed_in, "/search/?q=cat&agent=vet&tag=pets&archived=no&pinned=no&since=2020-01-01&until=9999-12-31")
    assert "first <mark>cat</mark>" in page
    assert "second" not in page
    assert '<option value="vet" selected>The vet</option>' in page
    assert 'value="2020-01-01"' in page
    assert "Never used" not in page
    assert "first <mark>" not in body(signed_in, "/search/?q=cat&until=2020-01-01")


def test_pages_follow_one_another_with_the_same_filters(signed_in: Client, ada: User) -> None:
    row = conversation(ada)
    say(row, *(f"cat {number}" for number in range(SHOWN + 1)))
    page = body(signed_in, "/search/?q=cat&archived=no")
    assert page.count('class="hit"') == SHOWN
    older = unescape(page.split('class="button" href="')[1].split('"')[0])
    assert older.startswith("?q=cat&archived=no&after=")
    page = body(signed_in, f"/search/{older}")
    assert page.count('class="hit"') == 1
    assert "Older" not in page


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("?q=...", "A query needs a letter or a number"),
        ("?q=" + "a" * 501, "at most 500 characters"),
        ("?q=" + "a+" * 65, "at most 64 words"),
        ("?q=cat&since=yesterday", "Enter a valid date"),
        ("?q=cat&agent=nobody", "Select a valid choice"),
        ("?q=cat&pinned=perhaps", "Select a valid choice"),
    ],
)
def test_what_cannot_be_searched_for_is_said_in_words(signed_in: Client, address: str, words: str) -> None:
    page = body(signed_in, f"/search/{address}", 400)
    assert words in page
    assert 'role="alert"' in page


@pytest.mark.parametrize("address", ["?q=%ffcat%ed%a0%80", "?q=cat&after=x", "?q=cat&after=99999999999999999999"])
def test_senseless_addresses_are_read_as_far_as_they_make_sense(signed_in: Client, ada: User, address: str) -> None:
    say(conversation(ada), "the cat")
    assert "the <mark>cat</mark>" in body(signed_in, f"/search/{address}")


def test_another_persons_words_are_not_shown(signed_in: Client) -> None:
    say(conversation(UserFactory.create(), "their cat"), "a cat of theirs")
    assert "Nothing was found" in body(signed_in, "/search/?q=cat")
