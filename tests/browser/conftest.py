"""A real server with a database of its own, and a browser whose every complaint fails the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect, sync_playwright

from tests.browser.line import Line
from tests.browser.watch import Watched
from tests.site import Site

OpenPage: TypeAlias = Callable[..., Page]

expect.set_options(timeout=15_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")  # not longer: while the driver runs, no asynchronous test can
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def site(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site, with a demo agent that writes at a pace that can be watched."""
    with Site(tmp_path_factory.mktemp("site"), pace=0.004) as made:
        yield made


@pytest.fixture(scope="module")
def signed_in(browser: Browser, site: Site) -> StorageState:
    """The cookies of somebody who followed a sign-in link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.sign_in_link())
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.address}/")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def open_page(browser: Browser, site: Site, request: pytest.FixtureRequest) -> Iterator[OpenPage]:
    """Open pages, each in a browser context of its own, and fail for what any of them complained about.

    `allowed` are words of complaints that are expected; `signed_in=False` is a stranger.
    """
    watched: list[Watched] = []

    def open_one(path: str = "/", *, signed_in: bool = True, allowed: tuple[str, ...] = (), **options: Any) -> Page:
        if signed_in:
            options["storage_state"] = request.getfixturevalue("signed_in")
        watched.append(Watched(browser, site.address, allowed, options))
        watched[-1].page.goto(path)
        return watched[-1].page

    yield open_one
    for one in watched:
        one.context.close()
    trouble = [complaint for one in watched for complaint in one.trouble]
    assert not trouble, trouble


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """A new chat."""
    return open_page()


@pytest.fixture
def line(page: Page) -> Line:
    """The line of the new chat to its server."""
    return Line(page)
