"""The chat page and its list, as a browser without scripts sees them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from agent.runtime.messages import AgentMessage
from conversations.models import Conversation, Execution, Revision, User
from conversations.unsaved import MOST_TURNS
from tests.factories import PASSWORD, AgentProfileFactory, ConversationFactory, ExecutionFactory, UserFactory
from tests.pages import body

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return UserFactory.create()


@pytest.fixture
def signed_in(client: Client, person: User) -> Client:
    client.force_login(person)
    return client


def said(text: str) -> dict[str, Any]:
    return {"id": f"message-{uuid4()}", "role": "user", "blocks": [{"type": "text", "text": text}]}


def answered(*blocks: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    return {"id": f"message-{uuid4()}", "role": role, "blocks": list(blocks)}


def call(name: str, arguments: dict[str, Any], call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "tool-call", "callId": call_id, "name": name, "input": arguments}


def result(
    text: str, *, call_id: str = "call_1", name: str = "sum", status: str = "success", **more: str
) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    block = {"type": "tool-result", "callId": call_id, "name": name, "status": status, "content": content}
    return {**block, "execution": more.get("execution", "completed")}


def keep(row: Conversation, *messages: dict[str, Any]) -> Conversation:
    """Give the conversation one more revision with these messages."""
    context = [AgentMessage.from_wire(message).to_wire() for message in messages]
    number = row.version + 1
    rest = {"checkpoint": None, "usage": None}
    row.head = Revision.objects.create(
        conversation=row, number=number, parent=row.head, context=context, model_context=rest
    )
    row.version = number
    row.save()
    return row


def end(row: Conversation, *messages: dict[str, Any], status: str = "cancelled", **more: Any) -> Execution:
    """Give the conversation a turn that began at its head and ended without a revision."""
    transcript = [AgentMessage.from_wire(message).to_wire() for message in messages]
    return ExecutionFactory.create(conversation=row, base=row.head, status=status, transcript=transcript, **more)


def written(*blocks: dict[str, str]) -> dict[str, Any]:
    """Return the message that was being written when a run ended."""
    empty = {"callId": "", "name": "", "text": "", "stopped": False}
    return {"messageId": "half", "blocks": [{**empty, "index": at, **block} for at, block in enumerate(blocks)]}


def in_order(page: str, *texts: str) -> bool:
    places = [page.index(text) for text in texts]
    return places == sorted(places)


@pytest.mark.parametrize("address", ["/", "/c/01890a5d-ac96-774b-bcce-b302099a8057/"])
def test_strangers_are_sent_to_the_sign_in_page(client: Client, address: str) -> None:
    response = client.get(address)

    assert response.status_code == 302
    assert response["Location"] == f"/accounts/login/?next={address}"


@pytest.mark.parametrize("key", ["a\x00bcdefgh", "x" * 5_000, "", "short", "' or 1=1 --"])
def test_a_session_cookie_that_cannot_be_ours_is_nobody(client: Client, key: str) -> None:
    """B69: also on PostgreSQL, which refuses NUL."""
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    assert client.get("/").status_code == 302
    assert client.get("/ai/conversations").status_code == 401


def test_the_sign_in_page_takes_e_mail_and_password(client: Client, person: User) -> None:
    assert 'type="password"' in body(client, "/accounts/login/")

    response = client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})

    assert response.status_code == 302
    assert response["Location"] == "/"


@pytest.mark.parametrize(
    "address",
    ["/accounts/password/change/", "/accounts/email/", "/accounts/2fa/", "/accounts/logout/"],
)
def test_the_account_pages_wear_the_clothes_of_the_site(signed_in: Client, address: str) -> None:
    response = signed_in.get(address, follow=True)

    assert 'class="card"' in response.content.decode()


def test_sign_up_is_closed(client: Client) -> None:
    assert "closed" in body(client, "/accounts/signup/").lower()


def test_a_new_chat_shows_three_suggestions_of_the_agent(signed_in: Client) -> None:
    AgentProfileFactory.create(name="Guide", suggested_prompts=["one?", "two?", "three?", "four?"])

    page = body(signed_in, "/")

    assert [word in page for word in ("one?", "two?", "three?", "four?")] == [True, True, True, False]
    assert "data-agent-picker" not in page


def test_a_new_chat_offers_the_agents_open_to_this_person(signed_in: Client) -> None:
    AgentProfileFactory.create(name="Open one", order=2)
    AgentProfileFactory.create(name="Open two", order=1, slug="two")
    AgentProfileFactory.create(name="Switched off", enabled=False)
    AgentProfileFactory.create(name="Closed").groups.add(Group.objects.create(name="others"))

    page = body(signed_in, "/")

    assert [name in page for name in ("Open one", "Open two", "Switched off", "Closed")] == [True, True, False, False]
    assert "data-agent-picker" in page
    assert 'data-agent="two"' in page


def test_a_new_chat_takes_the_default_agent_or_the_one_asked_for(signed_in: Client) -> None:
    AgentProfileFactory.create(slug="first", order=1)
    AgentProfileFactory.create(slug="usual", order=2, is_default=True)

    assert 'data-agent="usual"' in body(signed_in, "/")
    assert 'data-agent="first"' in body(signed_in, "/?agent=first")
    assert 'data-agent="usual"' in body(signed_in, "/?agent=unknown")


def test_a_chat_without_any_agent_says_so(signed_in: Client) -> None:
    assert "There is no agent for you yet" in body(signed_in, "/")


def test_the_page_tells_its_script_where_the_server_answers(signed_in: Client) -> None:
    assert 'data-base-path="/ai"' in body(signed_in, "/")


def test_the_list_shows_own_conversations_newest_first(signed_in: Client, person: User) -> None:
    for title in ("older", "newer"):
        ConversationFactory.create(owner=person, title=title)
    ConversationFactory.create(title="of somebody else")
    ConversationFactory.create(owner=person, title="put away", archived=True)

    page = body(signed_in, "/")

    assert page.index("newer") < page.index("older")
    assert "of somebody else" not in page
    assert "put away" not in page


def test_the_list_has_a_limit(signed_in: Client, person: User, settings: Any) -> None:
    settings.PAR = settings.PAR.model_copy(update={"conversation_list_limit": 2})
    rows = ConversationFactory.create_batch(3, owner=person)

    page = body(signed_in, "/")

    assert [f"/c/{row.pk}/" in page for row in rows] == [False, True, True]
    assert body(signed_in, "/").count(">Newest<") == 0


def older(page: str) -> str | None:
    """Return the address of the link to older conversations."""
    link = re.search(r'<a href="([^"]+)">Older</a>', page)
    return f"/{unescape(link[1])}" if link else None


def test_older_conversations_are_reached_page_by_page(
    signed_in: Client, person: User, settings: Any, django_assert_num_queries: Any
) -> None:
    settings.PAR = settings.PAR.model_copy(update={"conversation_list_limit": 2})
    rows = ConversationFactory.create_batch(7, owner=person)
    same = timezone.now()
    Conversation.objects.filter(pk__in=[row.pk for row in rows[2:]]).update(updated_at=same)  # ties lose nothing
    ConversationFactory.create(title="of somebody else")
    pages = []
    address: str | None = "/"
    while address is not None:
        with django_assert_num_queries(4):  # session, person, agents, list
            pages.append(body(signed_in, address))
        address = older(pages[-1])

    seen = [[row.pk for row in rows if f"/c/{row.pk}/" in page] for page in pages]
    assert [len(part) for part in seen] == [2, 2, 2, 1]
    assert sorted(pk for part in seen for pk in part) == sorted(row.pk for row in rows)
    assert all("of somebody else" not in page for page in pages)
    assert [">Newest<" in page for page in pages] == [False, True, True, True]


@pytest.mark.parametrize("before", ["x", "1", "1,2", "9" * 18 + ",01890a5d-ac96-774b-bcce-b302099a8057", "²,"])
def test_a_senseless_page_of_the_list_is_the_first(signed_in: Client, person: User, before: str) -> None:
    row = ConversationFactory.create(owner=person)

    response = signed_in.get("/", {"before": before})

    assert f"/c/{row.pk}/" in response.content.decode()


def test_an_address_with_nul_is_refused_in_words(signed_in: Client) -> None:
    """PostgreSQL takes none, SQLite does."""
    assert "Go back and try again" in body(signed_in, "/?before=%00", status=400)


def test_the_furthest_page_of_the_list_is_empty(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)

    assert f"/c/{row.pk}/" not in body(signed_in, f"/?before=0,{row.pk}")
    assert f"/c/{row.pk}/" in body(signed_in, f"/?before={'9' * 17},{row.pk}")


def test_a_conversation_shows_what_was_said(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person, title="Sums", agent__name="Counter")
    thought = {"type": "reasoning", "text": "They want *sums*."}
    keep(
        row,
        said("What is <b>1 + 2</b>?"),
        answered(thought, call("sum", {"numbers": [1, 2]})),
        answered(result("3"), role="tool"),
        answered({"type": "text", "text": "It is **3**."}),
    )

    page = body(signed_in, f"/c/{row.pk}/")

    assert '<p class="said">What is &lt;b&gt;1 + 2&lt;/b&gt;?</p>' in page
    assert "<p>They want <em>sums</em>.</p>" in page
    assert "<p>It is <strong>3</strong>.</p>" in page
    assert '<dt dir="auto">numbers</dt>\n  <dd dir="auto" class="json">[\n  1,\n  2\n]</dd>' in page
    assert 'data-status="done"' in page
    assert '<pre class="tool-result-text" tabindex="0">3</pre>' in page
    assert "<h1>Sums</h1>" in page
    assert '<h2 class="who">Counter</h2>' in page
    assert 'data-version="1"' in page


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({"status": "error"}, "error"),
        ({"status": "error", "execution": "not-executed"}, "not-executed"),
        ({"status": "error", "execution": "unknown"}, "unknown"),
        ({"status": "success", "execution": "result-omitted"}, "result-omitted"),
    ],
)
def test_a_card_says_what_became_of_its_call(
    signed_in: Client, person: User, facts: dict[str, str], shown: str
) -> None:
    row = ConversationFactory.create(owner=person)
    keep(row, said("go"), answered(call("sum", {})), answered(result("words", **facts), role="tool"))

    assert f'data-call-id="call_1" data-status="{shown}"' in body(signed_in, f"/c/{row.pk}/")


def test_hostile_text_is_inert_everywhere_on_the_page(signed_in: Client, person: User) -> None:
    """B74, B75, B76: in title, message, tool name, arguments and result."""
    attack = '"><img src=x onerror=alert(1)><script>alert(1)</script>'
    row = ConversationFactory.create(owner=person, title=attack, agent__name=attack)
    link = {"type": "text", "text": f"[x](javascript:alert(1)) ![p](https://evil.example/p) {attack}"}
    keep(
        row,
        said(attack),
        answered(link, call(attack, {attack: attack})),
        answered(result(attack, name=attack), role="tool"),
    )

    half = written({"type": "text", "text": attack}, {"type": "tool-call", "name": attack, "text": attack})
    end(row, said(attack), status="failed", error_code="X", error_message=attack, partial=half)

    page = body(signed_in, f"/c/{row.pk}/")

    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert 'href="javascript:' not in page
    assert 'src="https://evil' not in page


@pytest.mark.parametrize("method", ["get", "head"])
def test_somebody_elses_conversation_is_as_unknown_as_none(signed_in: Client, method: str) -> None:
    """B77."""
    foreign = keep(ConversationFactory.create(title="private words"), said("private words"))

    responses = [getattr(signed_in, method)(f"/c/{pk}/") for pk in (foreign.pk, uuid4())]

    assert [response.status_code for response in responses] == [404, 404]
    assert b"private words" not in responses[0].content


def test_a_long_conversation_shows_its_end_and_the_way_to_the_rest(signed_in: Client, person: User) -> None:
    """B72."""
    row = ConversationFactory.create(owner=person)
    turns = [(said(f"question {n}."), answered({"type": "text", "text": f"answer {n}."})) for n in range(50)]
    keep(row, *(message for turn in turns for message in turn))

    page = body(signed_in, f"/c/{row.pk}/")
    assert "question 19." not in page
    assert "question 20." in page
    assert "Show earlier messages (40)" in page

    assert "question 0." in body(signed_in, f"/c/{row.pk}/?show=120")


@pytest.mark.parametrize("asked", ["0", "-3", "x", "9" * 400, "²", ""])
def test_a_senseless_number_of_messages_is_survived(signed_in: Client, person: User, asked: str) -> None:
    row = keep(ConversationFactory.create(owner=person), said("hello there"))

    assert "hello there" in body(signed_in, f"/c/{row.pk}/?show={asked}")


def test_a_longer_list_and_a_longer_history_cost_no_more_queries(
    signed_in: Client, person: User, django_assert_num_queries: Any
) -> None:
    row = ConversationFactory.create(owner=person)
    for n in range(8):
        keep(row, said(f"q {n}"), answered({"type": "text", "text": f"a {n}"}))
        ConversationFactory.create(owner=person)
        end(row, said(f"stopped {n}"), partial=written({"type": "text", "text": "half"}))

    with django_assert_num_queries(
        9
    ):  # session, person, conversation, two of its context, versions, two of unsaved turns, list
        body(signed_in, f"/c/{row.pk}/")


def test_stopped_and_failed_turns_stand_where_they_happened(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)
    first = end(row, said("q 0"), status="failed", error_code="MODEL_FAILED", error_message="no route to host")
    keep(row, said("q 1"), answered({"type": "text", "text": "a 1."}))
    end(row, said("q 2"))
    end(row, said("q 3"))
    keep(row, said("q 4"), answered(call("sum", {})), answered(result("3"), role="tool"))
    last = end(row, said("q 5"))

    page = body(signed_in, f"/c/{row.pk}/")

    assert in_order(page, ">q 0<", ">q 1<", ">a 1.<", ">q 2<", ">q 3<", ">q 4<", ">q 5<")
    assert f'<div class="run" data-execution-id="{first.pk}" data-status="failed">' in page
    assert f'<div class="run" data-execution-id="{last.pk}" data-status="cancelled">' in page
    assert '<p class="notice-text">The model did not answer.</p>' in page
    assert '<p class="notice-detail">No route to host.</p>' in page
    transcript = page[page.index('id="transcript"') : page.index('id="composer"')]
    assert transcript.count('<p class="notice-text">Stopped.</p>') == 3
    assert transcript.count("not part of the conversation") == 4


@pytest.mark.parametrize(("blocks", "offered"), [(1, True), (2, False)])
def test_only_what_is_one_text_can_be_sent_again_from_the_page(
    signed_in: Client, person: User, blocks: int, offered: bool
) -> None:
    row = ConversationFactory.create(owner=person)
    message = said("q")
    end(row, message | {"blocks": message["blocks"] * blocks})

    page = body(signed_in, f"/c/{row.pk}/")

    transcript = page[page.index('id="transcript"') : page.index('id="composer"')]
    assert ('data-offer="again">' in transcript) is offered
    assert ('data-offer="again" hidden>' in transcript) is not offered


def test_what_has_no_word_in_it_is_not_shown(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)
    blank = {"type": "reasoning", "text": "\n \n"}
    keep(row, said("q"), answered(blank, {"type": "text", "text": "\n"}, {"type": "text", "text": "a"}))

    page = body(signed_in, f"/c/{row.pk}/")

    transcript = page[page.index('id="transcript"') : page.index('id="composer"')]
    assert "reasoning" not in transcript
    assert transcript.count('class="prose"') == 1


def test_all_that_an_unsaved_turn_wrote_is_shown(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)
    end(
        row,
        said("go"),
        answered({"type": "text", "text": "Let me **see**."}, call("sum", {"numbers": [1]})),
        answered(result("stopped before", status="error", execution="not-executed"), role="tool"),
        partial=written(
            {"type": "reasoning", "text": "I *think*"},
            {"type": "text", "text": " "},
            {"type": "text", "text": "Half `a` word"},
            {"type": "tool-call", "callId": "call_2", "name": "sum", "text": '{"numb'},
        ),
    )

    page = body(signed_in, f"/c/{row.pk}/")

    assert "<p>Let me <strong>see</strong>.</p>" in page
    assert 'data-call-id="call_1" data-status="not-executed"' in page
    assert '<pre class="tool-result-text" tabindex="0">stopped before</pre>' in page
    assert "<p>I <em>think</em></p>" in page
    assert "<p>Half <code>a</code> word</p>" in page
    transcript = page[page.index('id="transcript"') : page.index('id="composer"')]
    assert transcript.count('class="prose"') == 3  # blank text is left out
    assert 'data-call-id="call_2" data-status="not-executed"' in page
    assert '{"numb' in unescape(page)


def test_an_unsaved_turn_of_a_hidden_part_is_hidden_with_it(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)
    end(row, said("stopped at the very beginning"))
    keep(row, said("early"), answered({"type": "text", "text": "yes"}))
    end(row, said("stopped early"))
    turns = [(said(f"question {n}."), answered({"type": "text", "text": f"answer {n}."})) for n in range(40)]
    keep(row, *(message for turn in turns for message in turn))
    end(row, said("stopped late"))

    page = body(signed_in, f"/c/{row.pk}/")
    assert [text in page for text in ("very beginning", "stopped early", "stopped late")] == [False, False, True]

    page = body(signed_in, f"/c/{row.pk}/?show=120")
    assert in_order(page, "very beginning", ">early<", "stopped early", "question 0.", "stopped late")


def test_what_runs_or_is_saved_is_not_shown_as_an_unsaved_turn(signed_in: Client, person: User) -> None:
    row = keep(ConversationFactory.create(owner=person), said("saved words"))
    ExecutionFactory.create(conversation=row, status="completed", revision=row.head)
    end(row, said("live words"), status="running")
    end(ConversationFactory.create(), said("words of somebody else"))

    page = body(signed_in, f"/c/{row.pk}/")

    assert page.count("saved words") == 1
    assert "live words" not in page
    assert "somebody else" not in page


def test_only_the_newest_unsaved_turns_are_shown(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)
    for n in range(MOST_TURNS + 1):
        end(row, said(f"attempt {n}."))

    page = body(signed_in, f"/c/{row.pk}/")

    assert "attempt 0." not in page
    assert in_order(page, "attempt 1.", f"attempt {MOST_TURNS}.")


def test_a_turn_that_was_lost_before_it_wrote_anything_shows_what_was_asked(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)
    end(row, status="failed", error_code="EXECUTION_LOST", error_message="", input=said("was this heard?"))

    page = body(signed_in, f"/c/{row.pk}/")

    assert '<p class="said">was this heard?</p>' in page
    assert '<p class="notice-text">The server was stopped while it answered.</p>' in page


@pytest.mark.parametrize(
    ("reason", "notice"), [("user", "Stopped."), ("shutdown", "The server was stopped while it answered.")]
)
def test_a_cancelled_turn_says_whether_a_person_or_the_server_stopped(
    signed_in: Client, person: User, reason: str, notice: str
) -> None:
    row = ConversationFactory.create(owner=person)
    end(row, said("go on"), outcome={"type": "cancelled", "reason": reason})

    assert f'<p class="notice-text">{notice}</p>' in body(signed_in, f"/c/{row.pk}/")


def test_an_answer_that_failed_half_way_broke_off(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person)
    half = written({"type": "text", "text": "Half a"})
    end(row, said("go on"), status="failed", error_code="MODEL_FAILED", error_message="cut", partial=half)

    page = body(signed_in, f"/c/{row.pk}/")

    assert '<p class="notice-text">The answer broke off.</p>' in page
    assert '<p class="notice-detail">Cut.</p>' in page


def test_an_answer_that_the_models_limit_cut_off_can_be_continued(signed_in: Client, person: User) -> None:
    """After a reload as well, and only at the end of the conversation."""
    row = keep(ConversationFactory.create(owner=person), said("Talk"), answered({"type": "text", "text": "Half an"}))
    Revision.objects.filter(pk=row.head_id).update(outcome={"type": "max-tokens"})
    page = body(signed_in, f"/c/{row.pk}/")
    assert page.index("Half an") < page.index("The answer was cut off") < page.index('data-offer="continue"')

    keep(row, said("Continue."), answered({"type": "text", "text": "answer."}))
    transcript = body(signed_in, f"/c/{row.pk}/").split("<template")[0]
    assert "The answer was cut off" not in transcript


@pytest.mark.parametrize(
    ("text", "status", "decision"),
    [
        ("The user rejected this call. Not today.", "rejected", "Rejected"),
        ("Nobody answered in time.", "rejected", "Not answered in time"),
        ("this tool may not be used", "not-executed", ""),
    ],
)
def test_how_a_question_was_decided_stays_to_be_seen(
    signed_in: Client, person: User, text: str, status: str, decision: str
) -> None:
    outcome = result(text, status="error", execution="not-executed")
    row = keep(
        ConversationFactory.create(owner=person), said("go"), answered(call("sum", {})), answered(outcome, role="tool")
    )
    page = body(signed_in, f"/c/{row.pk}/")

    assert f'data-call-id="call_1" data-status="{status}"' in page
    assert f'<span class="tool-decision"{"" if decision else " hidden"}>{decision}</span>' in page


def test_a_new_chat_costs_a_fixed_number_of_queries(
    signed_in: Client, person: User, django_assert_num_queries: Any
) -> None:
    AgentProfileFactory.create_batch(5, suggested_prompts=["a?"])
    ConversationFactory.create_batch(5, owner=person)

    with django_assert_num_queries(4):  # session, person, agents, list
        body(signed_in, "/")


def test_the_pages_run_under_a_strict_policy(signed_in: Client) -> None:
    response = signed_in.get("/")
    policy = response["Content-Security-Policy"]
    page = response.content.decode()

    assert "unsafe" not in policy
    assert " style=" not in page
    assert " onclick=" not in page
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert f'<script type="importmap" nonce="{nonce}">' in page


def test_signing_out_ends_the_session(signed_in: Client) -> None:
    signed_in.post("/accounts/logout/")

    assert signed_in.get("/").status_code == 302


@pytest.mark.parametrize("address", ["/nowhere/", "/c/no-uuid/"])
def test_an_unknown_address_has_a_page_of_its_own(client: Client, address: str) -> None:
    assert "Nothing here" in body(client, address, 404)


def test_a_form_without_its_token_is_refused_in_words(person: User) -> None:
    strict = Client(enforce_csrf_checks=True)

    response = strict.post("/accounts/login/", {"login": person.email, "password": PASSWORD})

    assert response.status_code == 403
    assert "This page is out of date" in response.content.decode()


def test_pinned_conversations_stand_above_all_others_on_every_page(
    signed_in: Client, person: User, settings: Any, django_assert_num_queries: Any
) -> None:
    settings.PAR = settings.PAR.model_copy(update={"conversation_list_limit": 2})
    rows = ConversationFactory.create_batch(6, owner=person)
    pinned = {rows[at].pk for at in (0, 2, 3)}
    Conversation.objects.filter(pk__in=pinned).update(pinned=True)
    seen = []
    address: str | None = "/"
    while address is not None:
        with django_assert_num_queries(4):  # session, person, agents, list
            page = body(signed_in, address)
        seen.append(re.findall(r'href="/c/([0-9a-f-]{36})/" ?', page.split('id="conversations"')[0]))
        seen.append(re.findall(r'href="/c/([0-9a-f-]{36})/" ?', page.split('id="conversations"')[1].split("</ul>")[0]))
        address = older(page)

    order = [str(rows[at].pk) for at in (3, 2, 0, 5, 4, 1)]
    assert seen == [order[:2], [], order[2:3], order[3:4], [], order[4:]]


def test_archived_conversations_are_listed_apart(signed_in: Client, person: User) -> None:
    ConversationFactory.create(owner=person, title="at hand")
    ConversationFactory.create(owner=person, title="put away", archived=True, temporary=True)
    ConversationFactory.create(title="of somebody else", archived=True)

    page = body(signed_in, "/?archived=1")

    assert [text in page for text in ("put away", "at hand", "of somebody else")] == [True, False, False]
    assert "<span data-temporary>Temporary</span>" in page
    assert "Back to all conversations" in page


def test_the_menu_offers_the_opposite_of_what_holds(signed_in: Client, person: User) -> None:
    row = ConversationFactory.create(owner=person, pinned=True, tags=["<b>", "two"])

    page = body(signed_in, f"/c/{row.pk}/")

    assert re.search(r'data-toggle="pinned" value="true"[^>]* hidden>Pin<', page)
    assert re.search(r'data-toggle="pinned" value="false"[^>]*[^n]>Unpin<', page)
    assert 'value="&lt;b&gt;, two"' in page
    assert f"/ai/conversations/{row.pk}/export?format=markdown" in page
    assert '<details class="menu" id="menu" hidden>' in body(signed_in, "/")
