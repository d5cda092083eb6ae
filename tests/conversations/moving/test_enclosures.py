"""Attachments go with their conversations, and come back as files of whoever imports them."""

from __future__ import annotations

import io
import json
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.utils import timezone

from agent.providers.images import MAX_SIDE
from agent.runtime.messages import AgentMessage, ModelContext, ModelState, TextBlock
from conversations.attachments import ReadFile, block_of, keep, open_bytes, picture_of, read_file
from conversations.attachments.storage import place_of, remove, storage
from conversations.exceptions import ImportInvalid
from conversations.models import Attachment, Conversation, User
from conversations.moving import Form, enclosures, export_all, export_one
from conversations.store import load_context, load_path, trees
from conversations.unsaved import unsaved_turns
from tests.conversations.attachments.files import pdf, picture, stored_in
from tests.conversations.moving.files import taken
from tests.factories import AgentProfileFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _storage(tmp_path: Path) -> Iterator[None]:
    with stored_in(tmp_path):
        yield


@pytest.fixture
def user() -> User:
    return UserFactory()


@pytest.fixture
def conversation(user: User) -> Conversation:
    """One message with a picture, a PDF and a text."""
    files = ((picture(), "tree.png"), (pdf("Page one"), "report.pdf"), ("Grüße".encode(), "notes.txt"))
    rows = [keep(user, read_file(data, name)) for data, name in files]
    said = AgentMessage(id="m-1", role="user", blocks=tuple(map(block_of, rows)))
    return trees.plant_tree(user, AgentProfileFactory(slug="helper"), [trees.Node(None, (said,))], title="Files")


def written(conversation: Conversation) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(
        b"".join(export_one(conversation.owner, conversation.pk, Form.JSON).pieces)  # type: ignore[arg-type]
    )
    return found


def imported(user: User, file: dict[str, Any]) -> Conversation:
    (id,) = taken(user, json.dumps(file).encode()).conversations
    return Conversation.objects.select_related("head").get(pk=id)


def files_of(conversation: Conversation) -> dict[str, bytes]:
    return {row.name: open_bytes(row) for row in Attachment.objects.filter(conversations=conversation)}


def test_another_person_gets_files_of_their_own(conversation: Conversation) -> None:
    copy = imported(other := UserFactory(), written(conversation))
    assert files_of(copy) == files_of(conversation)
    mine = Attachment.objects.filter(owner=other)
    (message,) = load_context(copy, copy.head).messages
    assert [block_of(row) for row in mine.order_by("created_at")] == list(message.blocks)
    assert not mine.filter(pk__in=Attachment.objects.filter(owner=conversation.owner)).exists()
    again = written(copy)
    assert [each["name"] for each in again["conversations"][0]["attachments"]] == [
        "tree.png",
        "report.pdf",
        "notes.txt",
    ]
    assert imported(other, again).pk == copy.pk
    assert mine.count() == 3


def test_the_same_file_again_makes_no_file_again(conversation: Conversation) -> None:
    other, file = UserFactory(), written(conversation)
    imported(other, file)
    imported(other, file)
    assert Attachment.objects.filter(owner=other).count() == 3


def test_what_is_new_brings_only_the_files_that_are_new(conversation: Conversation) -> None:
    other, old = UserFactory(), written(conversation)
    imported(other, old)
    first = old["conversations"][0]["revisions"][0]
    new = first | {"revisionId": str(conversation.pk), "number": 2, "parent": first["revisionId"]}
    new["messages"] = [first["messages"][0] | {"id": "m-2"}]
    old["conversations"][0]["revisions"].append(new)
    assert taken(other, json.dumps(old).encode()).updated == 1
    assert Attachment.objects.filter(owner=other).count() == 3


def test_a_file_that_is_gone_costs_no_conversation(conversation: Conversation) -> None:
    row = Attachment.objects.get(name="tree.png")
    remove(row.digest)
    file = written(conversation)
    assert [each["data"] is None for each in file["conversations"][0]["attachments"]] == [True, False, False]
    copy = imported(UserFactory(), file)
    (message,) = load_context(copy, copy.head).messages
    assert message.blocks[0].to_wire() == {"type": "text", "text": "[image: tree.png]"}
    page = b"".join(export_one(conversation.owner, conversation.pk, Form.HTML).pieces).decode()  # type: ignore[arg-type]
    assert "[picture: tree.png]" in page


def test_pages_show_pictures_and_name_files(conversation: Conversation) -> None:
    data = b64encode(picture()).decode()
    for form, before in ((Form.HTML, 'src="data:'), (Form.MARKDOWN, "]: data:")):
        page = b"".join(export_one(conversation.owner, conversation.pk, form).pieces).decode()  # type: ignore[arg-type]
        assert f"{before}image/png;base64,{data}" in page
        assert "[file: report" in page
        assert "<attachment" not in page


def test_an_archive_has_the_files_beside_the_pages(conversation: Conversation) -> None:
    export = export_all(conversation.owner, Form.MARKDOWN)  # type: ignore[arg-type]
    with zipfile.ZipFile(io.BytesIO(b"".join(export.pieces))) as archive:
        kept = {archive.read(name) for name in archive.namelist() if "/" in name}
        assert kept == set(files_of(conversation).values())
        assert all(".." not in name and not name.startswith("/") for name in archive.namelist())


def attachment(file: dict[str, Any], at: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = file["conversations"][0]["attachments"][at]
    return found


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no base64": (lambda file: attachment(file).update(data="é"), "$.conversations[0].attachments[0].data"),
    "half base64": (lambda file: attachment(file).update(data="A"), "$.conversations[0].attachments[0].data"),
    "no picture": (
        lambda file: attachment(file).update(data=b64encode(b"\x89PNG\r\n\x1a\n\0").decode()),
        "$.conversations[0].attachments[0]",
    ),
    "a program": (
        lambda file: attachment(file, 2).update(data=b64encode(b"\x7fELF\0\0").decode()),
        "$.conversations[0].attachments[2]",
    ),
    "not there": (lambda file: file["conversations"][0].pop("attachments"), "$.conversations[0].revisions[0]"),
    "twice": (
        lambda file: file["conversations"][0]["attachments"].append(attachment(file)),
        "$.conversations[0].attachments[3].attachmentId",
    ),
}


@pytest.mark.parametrize(("break_it", "place"), WRONG.values(), ids=WRONG.keys())
def test_a_file_that_nobody_could_upload_is_refused_with_the_place(
    conversation: Conversation, break_it: Callable[[dict[str, Any]], Any], place: str
) -> None:
    file = written(conversation)
    break_it(file)
    other = UserFactory()
    with pytest.raises(ImportInvalid) as refused:
        taken(other, json.dumps(file).encode())
    assert refused.value.place == place
    assert not Conversation.objects.filter(owner=other).exists()
    assert not Attachment.objects.filter(owner=other).exists()


def test_somebody_elses_picture_cannot_be_asked_for(conversation: Conversation) -> None:
    """B77: an id of an attachment means something in its file only."""
    file = written(conversation)
    theirs = keep(UserFactory(), read_file(picture(50, 50), "secret.png"))
    block = file["conversations"][0]["revisions"][0]["messages"][0]["blocks"][0]
    block["source"]["url"] = f"attachment:{theirs.pk}"
    with pytest.raises(ImportInvalid, match="is not in the file"):
        taken(UserFactory(), json.dumps(file).encode())


def test_a_picture_that_is_no_picture_is_refused(conversation: Conversation) -> None:
    """A picture block may not show a text."""
    file = written(conversation)
    block = file["conversations"][0]["revisions"][0]["messages"][0]["blocks"][0]
    block["source"]["url"] = f"attachment:{attachment(file, 2)['attachmentId']}"
    with pytest.raises(ImportInvalid, match=r"attachments\[2\]: it is no picture"):
        taken(UserFactory(), json.dumps(file).encode())


def test_the_storage_holds_one_copy_for_both(conversation: Conversation) -> None:
    imported(UserFactory(), written(conversation))
    digests = set(Attachment.objects.values_list("file_id", flat=True))
    assert len(digests) == 3
    assert all(storage().exists(place_of(digest)) for digest in digests)
    assert picture_of(load_context(conversation, conversation.head).messages[0].blocks[0]) is not None


def with_files(conversation: Conversation, *files: tuple[str, bytes]) -> dict[str, Any]:
    """Return an export with these pictures and PDFs instead of its own; its message shows and quotes them."""
    file = written(conversation)
    file["conversations"][0]["attachments"], blocks = [], []
    for at, (name, data) in enumerate(files):
        id = f"00000000-0000-4000-8000-{at:012}"
        enclosed = {"attachmentId": id, "name": name, "mediaType": "", "data": b64encode(data).decode()}
        file["conversations"][0]["attachments"].append(enclosed)
        quoted = f'<attachment id="{id}" name="{name}" type="application/pdf" pages="1">\nx\n</attachment>'
        shown = {"type": "image", "source": {"type": "url", "url": f"attachment:{id}"}}
        blocks.append({"type": "text", "text": quoted} if name.endswith("pdf") else shown)
    file["conversations"][0]["revisions"][0]["messages"][0]["blocks"] = blocks
    return file


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read, as often as they are."""
    names: list[str] = []

    def reading(data: bytes, name: str) -> ReadFile:
        names.append(name)
        return read_file(data, name)

    monkeypatch.setattr(enclosures, "read_file", reading)
    return names


def test_a_file_that_no_message_mentions_is_not_read(conversation: Conversation, read: list[str]) -> None:
    file = written(conversation)
    file["conversations"][0]["revisions"][0]["messages"][0]["blocks"].pop(0)
    attachment(file).update(data=b64encode(b"\x7fELF\0\0").decode())
    assert files_of(imported(UserFactory(), file)).keys() == {"report.pdf", "notes.txt"}
    assert read == ["report.pdf", "notes.txt"]


def test_the_same_content_is_read_once(conversation: Conversation, read: list[str]) -> None:
    """Whatever it is called, and also if it is made smaller."""
    large, small = picture(MAX_SIDE + 1, 20), picture()
    file = with_files(conversation, ("a.png", large), ("b.png", large), ("c.png", small), (" ", small))
    copies = files_of(imported(UserFactory(), file))
    assert read == ["a.png", "c.png"]
    assert copies.keys() == {"a.png", "b.png", "c.png", "picture.png"}
    assert copies["a.png"] == copies["b.png"] != large
    assert copies["c.png"] == copies["picture.png"] == small


PICTURES = [(f"{at}.png", picture(40, 30 + at)) for at in range(3)]
PDFS = [(f"{at}.pdf", pdf(*["A page"] * 3, f"Page {at}")) for at in range(3)]
LONG = [(f"{at}.pdf", pdf(f"Word {at}", repeat=2_000)) for at in range(3)]


@pytest.mark.parametrize(
    ("limit", "most", "files", "what"),
    [
        ("MOST_PIXELS", 40 * 61, PICTURES, "pictures up to it have more than 2,440 pixels"),
        ("MOST_PAGES", 20, PDFS, "PDFs up to it have more than 20 pages"),
        ("MOST_PAGES", 8, PDFS, "PDFs up to it have more than 8 pages"),
        ("MOST_PAGES", 8, LONG, "PDFs up to it have more than 8 pages"),
    ],
    ids=["pictures", "PDFs", "pages", "characters"],
)
def test_all_files_of_an_import_are_bounded(
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
    read: list[str],
    limit: str,
    most: int,
    files: list[tuple[str, bytes]],
    what: str,
) -> None:
    monkeypatch.setattr(enclosures, limit, most)
    if most == 8:
        monkeypatch.setattr(enclosures, "LEAST_PAGES", 1)
    with pytest.raises(ImportInvalid, match=what) as refused:
        taken(UserFactory(), json.dumps(with_files(conversation, *files)).encode())
    assert refused.value.place == "$.conversations[0].attachments[2]"
    assert read == [name for name, _ in (files[:2] if limit == "MOST_PIXELS" else files)]
    copy = imported(UserFactory(), with_files(conversation, *files[:2], *files[:1]))
    assert sorted(files_of(copy)) == sorted(name for name, _ in files[:2])


def test_a_picture_of_a_turn_that_was_not_saved_goes_with_it(conversation: Conversation) -> None:
    row = keep(conversation.owner, read_file(picture(), "lost.png"))
    said = AgentMessage(id="u-1", role="user", blocks=(block_of(row),)).to_wire()
    failed = ExecutionFactory.build(
        conversation=conversation,
        base=conversation.head,
        status="failed",
        input=said,
        transcript=[said],
        created_at=timezone.now(),
    )
    trees.leave_turns(conversation, [failed])
    file = written(conversation)
    copy = imported(other := UserFactory(), file)
    (turn,) = unsaved_turns(copy, load_path(copy, copy.head))

    mine = Attachment.objects.get(owner=other, name="lost.png")
    assert [picture_of(block) for block in turn.messages[0].blocks] == [mine.pk]
    assert open_bytes(mine) == picture()
    del file["conversations"][0]["attachments"][-1]
    with pytest.raises(ImportInvalid, match=r"unsavedTurns\[0\].*is not in the file"):
        imported(UserFactory(), file)


def test_seals_hold_for_what_is_new_below_a_message_with_files(conversation: Conversation) -> None:
    """A copy mentions files under ids of its own, and says the same all the same."""
    other = UserFactory()
    imported(other, written(conversation))
    state = ModelContext(model_state=ModelState(format="f/v1", data="s-2"))
    said = AgentMessage(id="m-2", role="user", blocks=(TextBlock(text="And now?"),))
    head = conversation.revisions.get()
    trees.move_head(conversation, *trees.graft(conversation, [trees.Node(head.public_id, (said,), state)]))
    done = taken(other, json.dumps(written(conversation)).encode())

    assert (done.updated, done.model_states_dropped) == (1, 0)
    copy = Conversation.objects.select_related("head").get(owner=other)
    assert load_context(copy, copy.head).model_context == state


def test_the_same_picture_twice_is_found_again_by_a_newer_file(user: User, conversation: Conversation) -> None:
    """Pasted pictures have one name; in the original each is an attachment of its own."""
    twice = [keep(user, read_file(picture(), "image.png")) for _ in range(2)]
    state = ModelContext(model_state=ModelState(format="f/v1", data="s"))

    def add(id: str, *blocks: Any) -> None:
        said = AgentMessage(id=id, role="user", blocks=blocks)
        conversation.refresh_from_db()
        assert conversation.head is not None
        rows = trees.graft(conversation, [trees.Node(conversation.head.public_id, (said,), state)])
        trees.move_head(conversation, *rows)

    add("m-2", block_of(twice[0]))
    add("m-3", block_of(twice[1]))
    other = UserFactory()
    imported(other, written(conversation))
    add("m-4", TextBlock(text="And now?"))
    remove(Attachment.objects.get(owner=user, name="report.pdf").digest)
    for person in (other, user):
        done = taken(person, json.dumps(written(conversation)).encode())
        assert done.model_states_dropped == 0
    assert Attachment.objects.filter(owner=other, name="image.png").count() == 1
