"""Files in the chat: by button, by paste, by drop; seen again after the page is loaded anew."""

from __future__ import annotations

import base64
from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect

from tests.browser.chat import faults, last_answer, wait_for_end
from tests.browser.conftest import OpenPage
from tests.browser.line import Line
from tests.conversations.attachments.files import pdf, picture

PICTURE = FilePayload(name="gradient.png", mimeType="image/png", buffer=picture(300, 200))
NOTES = FilePayload(name='my "notes" & more.txt', mimeType="text/plain", buffer=b"one\ntwo <b>three</b>")
REPORT = FilePayload(name="report.pdf", mimeType="application/pdf", buffer=pdf("A page", "Another"))

# Lets a script bring files as a person would: by the clipboard, or from another window.
BRING = """({kind, target, files}) => {
  const transfer = new DataTransfer();
  for (const {name, type, data} of files) {
    const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
    transfer.items.add(new File([bytes], name, {type}));
  }
  const place = document.querySelector(target);
  if (kind === "paste") {
    const event = new ClipboardEvent("paste", {clipboardData: transfer, bubbles: true, cancelable: true});
    place.dispatchEvent(event);
  } else {
    for (const each of ["dragover", "drop"]) {
      place.dispatchEvent(new DragEvent(each, {dataTransfer: transfer, bubbles: true, cancelable: true}));
    }
  }
}"""


def bring(page: Page, kind: str, target: str, *files: FilePayload) -> None:
    data = [
        {"name": file["name"], "type": file["mimeType"], "data": base64.b64encode(file["buffer"]).decode()}
        for file in files
    ]
    page.evaluate(BRING, {"kind": kind, "target": target, "files": data})


def attach(page: Page, *files: FilePayload) -> None:
    with page.expect_file_chooser() as chosen:
        page.get_by_role("button", name="Attach").click()
    chosen.value.set_files(list(files))


def seen(page: Page) -> None:
    """Everything of the message is shown, and the picture has come."""
    said = page.locator(".message-user").first
    shown = said.get_by_role("img", name="gradient.png")
    expect(shown).to_be_visible()
    page.wait_for_function("image => image.complete && image.naturalWidth === 300", arg=shown.element_handle())
    expect(said.locator(".said")).to_have_text("Look at these")
    notes, report = said.locator("details.file").all()
    expect(notes.locator(".file-name")).to_have_text('my "notes" & more.txt')
    expect(notes.locator(".file-text")).to_be_hidden()
    notes.locator("summary").click()
    expect(notes.locator(".file-text")).to_have_text("one\ntwo <b>three</b>")
    expect(report.locator(".file-kind")).to_have_text("PDF, 2 pages")
    with page.expect_download() as download:
        notes.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename.startswith("my ")
    assert Path(download.value.path()).read_bytes() == NOTES["buffer"]
    notes.locator("summary").click()


def test_files_by_button_paste_and_drop_are_sent_and_seen_again(page: Page) -> None:
    chips = page.get_by_role("list", name="Attached files").get_by_role("listitem")
    attach(page, PICTURE)
    expect(chips).to_have_count(1)
    bring(page, "paste", "#box", NOTES)
    bring(page, "drop", "#transcript", REPORT, PICTURE)
    expect(page.locator(".chip[data-state=ready]")).to_have_count(4)
    page.get_by_role("button", name="Remove gradient.png").last.click()
    expect(chips).to_have_count(3)
    expect(page.get_by_role("button", name="Remove report.pdf")).to_be_focused()
    assert faults(page) == []

    page.get_by_label("Message", exact=True).fill("Look at these")
    page.keyboard.press("Enter")
    wait_for_end(page)
    expect(chips).to_have_count(0)
    expect(last_answer(page)).not_to_be_empty()
    seen(page)
    page.reload()
    seen(page)
    assert faults(page) == []


def test_a_message_may_be_nothing_but_a_file(page: Page) -> None:
    attach(page, NOTES)
    send = page.get_by_role("button", name="Send", exact=True)
    expect(send).to_be_enabled()
    send.click()
    wait_for_end(page)
    expect(page.locator(".message-user details.file")).to_have_count(1)
    expect(page.locator(".message-user .said")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text('my "notes" & more.txt')
    expect(page.locator(".conversations [aria-current=page] .title")).to_have_text('my "notes" & more.txt')


def test_a_file_that_is_refused_says_why_and_holds_up_the_message_until_it_is_removed(open_page: OpenPage) -> None:
    page = open_page(allowed=("422", "Unprocessable"), viewport={"width": 360, "height": 640})
    attach(page, FilePayload(name="program.exe", mimeType="image/png", buffer=b"MZ\0\1"))
    expect(page.locator(".chip")).to_contain_text("This file cannot be attached. It is no PNG")
    page.get_by_label("Message", exact=True).fill("Hello")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Remove program.exe").press("Enter")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()


def test_files_beside_a_draft_are_there_after_the_page_is_loaded_anew(page: Page) -> None:
    attach(page, REPORT)
    expect(page.locator(".chip[data-state=ready]")).to_have_count(1)
    page.reload()
    expect(page.locator(".chip[data-state=ready]")).to_contain_text("report.pdf")


def test_the_files_of_an_edited_message_stay_with_it_unless_they_are_removed(page: Page, line: Line) -> None:
    attach(page, PICTURE, NOTES, REPORT)
    expect(page.locator(".chip[data-state=ready]")).to_have_count(3)
    page.get_by_label("Message", exact=True).fill("Look at these")
    page.keyboard.press("Enter")
    wait_for_end(page)
    page.get_by_role("button", name="Edit this message").click()
    box = page.get_by_label("Edit your message")
    expect(box).to_have_value("Look at these")
    kept = page.get_by_role("list", name="Files of the message").get_by_role("listitem")
    expect(kept).to_contain_text(["gradient.png", 'my "notes" & more.txt', "report.pdf"])
    assert faults(page) == []
    page.get_by_role("button", name="Remove report.pdf").press("Enter")
    expect(page.get_by_role("button", name='Remove my "notes" & more.txt')).to_be_focused()
    line.refused = {"start": "RATE_LIMITED"}
    box.fill("Look at these two")
    box.press("Enter")
    expect(page.locator(".edit .problem")).to_contain_text("too fast")
    page.reload()
    expect(kept).to_have_count(2)
    wait_for_end(page)
    line.refused = {}
    box.press("Enter")
    said = page.locator(".message-user")
    for _ in range(2):
        expect(said.locator(".said")).to_have_text("Look at these two")
        expect(said.locator(".file-name")).to_have_text('my "notes" & more.txt')
        expect(said.locator(".picture img")).to_be_visible()
        wait_for_end(page)
        page.reload()
    expect(page.locator(".versions-at")).to_have_text("2/2")
    page.get_by_role("button", name="Edit this message").click()
    for name in ("gradient.png", 'my "notes" & more.txt'):
        page.get_by_role("button", name=f"Remove {name}").click()
    expect(box).to_be_focused()
    box.fill("")
    box.press("Enter")
    expect(box).to_be_focused()
    box.fill("Nothing to look at")
    box.press("Enter")
    wait_for_end(page)
    expect(said.locator(".file, .picture")).to_have_count(0)
    expect(page.locator(".versions-at")).to_have_text("3/3")
