"""The admin in a real browser: its pages work under their policy and complain about nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.site import Site

PASSWORD = "a quiet river 42"
SET_PASSWORD = f"""
from conversations.models import User
user = User.objects.get(username="admin")
user.set_password("{PASSWORD}")
user.save()
"""


@pytest.fixture
def admin(open_page: OpenPage, site: Site) -> Page:
    site.shell(SET_PASSWORD)
    page = open_page("/admin/", signed_in=False)
    page.fill("input[name=login]", "admin@localhost")
    page.fill("input[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/admin/")
    return page


def test_every_list_and_form_opens_without_a_complaint(admin: Page) -> None:
    expect(admin.get_by_text("Runs in 24 hours")).to_be_visible()
    lists = admin.locator("main a[href^='/admin/'], #main a[href^='/admin/']").evaluate_all(
        "links => [...new Set(links.map(a => a.getAttribute('href')))].filter(h => h.split('/').length == 5)"
    )
    assert len(lists) > 8
    for address in lists:
        admin.goto(address)
        first = admin.locator("#result_list tbody tr a[href]").first
        if first.count():
            first.click()
            admin.wait_for_load_state()


def test_tools_are_chosen_by_typing(admin: Page) -> None:
    admin.goto("/admin/agent/agentprofile/add/")
    admin.locator(".field-tools .select2-selection").first.click()
    admin.get_by_role("option", name="local.calculate").click()
    expect(admin.locator(".field-tools .select2-selection__choice")).to_have_count(1)


def test_a_key_is_set_and_not_shown_again(admin: Page, site: Site) -> None:
    admin.goto("/admin/agent/modelendpoint/add/")
    admin.get_by_label("Name").press_sequentially("Local")
    expect(admin.get_by_label("Slug")).to_have_value("local")
    admin.locator("select[name=protocol]").select_option("openai-chat")
    admin.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
    admin.get_by_label("API key").fill("sk-very-secret")
    admin.get_by_role("button", name="Save and continue editing").click()
    expect(admin.get_by_text("was added successfully")).to_be_visible()
    assert admin.get_by_label("API key").input_value() == ""
    assert "sk-very-secret" not in admin.content()
