"""Files in a shared conversation: pictures are shown below the link, all else is not."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from agent.runtime.messages import Base64Source, ImageBlock, TextBlock
from conversations import attachments, sharing, store
from conversations.models import Attachment, Conversation, User
from conversations.sharing.pictures import bare_picture
from tests.conversations.attachments.files import picture, stored_in
from tests.conversations.sharing.talk import SECRET, answered, go_on, message, talk
from tests.factories import UserFactory
from tests.pages import body

pytestmark = pytest.mark.django_db(transaction=True)

PICTURE = picture()


@pytest.fixture(autouse=True)
def stored(tmp_path: Path) -> Iterator[Path]:
    """A storage of the test's own."""
    with stored_in(tmp_path / "attachments"):
        yield tmp_path / "attachments"


def uploaded(user: User, data: bytes = PICTURE, name: str = f"{SECRET}.png") -> Attachment:
    return attachments.keep(user, attachments.read_file(data, name))


def taken(width: int = 40) -> bytes:
    """A photo that says where it was taken, and how it is to be turned."""
    exif = Image.Exif()
    exif[0x10E], exif[0x112] = f"description-{SECRET}", 6
    exif.get_ifd(0x8825)[1] = f"gps-{SECRET}"
    return picture(width, format="JPEG", exif=exif)


@pytest.fixture
def owner() -> User:
    return UserFactory()


@pytest.fixture
def shown(owner: User) -> Attachment:
    return uploaded(owner)


@pytest.fixture
def row(owner: User, shown: Attachment) -> Conversation:
    text = uploaded(owner, f"content-{SECRET}".encode(), f"{SECRET}.txt")
    blocks = (TextBlock(text="Look"), attachments.block_of(shown), attachments.block_of(text))
    return talk(owner, (message("user", *blocks), answered("I see")))


@pytest.fixture
def address(owner: User, row: Conversation) -> str:
    return f"/s/{sharing.create_share(owner, row.pk)[1]}/"


def test_a_picture_is_shown_to_whoever_has_the_link(client: Client, address: str, shown: Attachment) -> None:
    page = body(client, address)
    assert f'src="{address}attachments/{shown.pk}"' in page
    assert SECRET not in page
    assert "[file]" in page

    response = client.get(f"{address}attachments/{shown.pk}")

    assert response.status_code == 200
    assert response.content == PICTURE
    assert response["Content-Type"] == "image/png"
    assert SECRET not in str(response.headers)
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Robots-Tag"] == "noindex, nofollow"
    assert response["Referrer-Policy"] == "no-referrer"
    assert {"no-store", "private"} <= {each.strip() for each in response["Cache-Control"].split(",")}
    assert "sandbox" in response["Content-Security-Policy"]
    assert not response.cookies


def test_only_the_pictures_of_the_snapshot_are_there(
    client: Client, owner: User, row: Conversation, address: str, shown: Attachment
) -> None:
    """Later ones, files, those of others and guesses answer as a link that leads nowhere."""
    later = uploaded(owner, picture(20, 20))
    go_on(row, message("user", attachments.block_of(later)), answered("Seen"))
    loose = uploaded(owner, picture(21, 21))
    text = Attachment.objects.get(media_type="text/plain")
    theirs = uploaded(UserFactory(), picture(22, 22))
    gone = client.get("/s/unknown/").content
    for pk in (later.pk, loose.pk, text.pk, theirs.pk, uuid4()):
        response = client.get(f"{address}attachments/{pk}")
        assert (response.status_code, response.content) == (404, gone), pk
    assert client.get(f"/s/unknown/attachments/{shown.pk}").content == gone
    (share,) = sharing.shares_of(owner).rows
    sharing.republish(owner, share.pk)
    assert client.get(f"{address}attachments/{later.pk}").content == picture(20, 20)
    sharing.revoke(share, owner)
    assert client.get(f"{address}attachments/{shown.pk}").status_code == 404


def test_a_page_of_many_pictures_is_not_read_for_each_of_them(
    client: Client, address: str, shown: Attachment, django_assert_num_queries: Any
) -> None:
    """The link, the light rows of the path and its bodies, the attachment; and then the link and the attachment."""
    for queries in (4, 2):
        with django_assert_num_queries(queries):
            assert client.get(f"{address}attachments/{shown.pk}").status_code == 200


MARKED: dict[str, Any] = {
    "image/jpeg": {"format": "JPEG", "comment": SECRET, "quality": 90},
    "image/png": {"format": "PNG"},
    "image/webp": {"format": "WEBP", "xmp": f"<x>{SECRET}</x>".encode(), "lossless": True},
}


@pytest.mark.parametrize("media_type", MARKED)
@pytest.mark.parametrize("progressive", [False, True])
def test_what_a_camera_wrote_into_a_picture_is_left_out(media_type: str, progressive: bool) -> None:
    """The place where it was taken, comments, and a film behind it; not how it is turned, nor its colours."""
    exif = Image.Exif()
    exif[0x10E], exif[0x112] = f"description-{SECRET}", 6
    exif.get_ifd(0x8825)[1] = f"gps-{SECRET}"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    options = {"exif": exif, "icc_profile": profile, "progressive": progressive, **MARKED[media_type]}
    if media_type == "image/png":
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_text("Comment", SECRET)
    marked = picture(64, 48, **options) + SECRET.encode()
    assert marked.count(SECRET.encode()) > 2

    bare = bare_picture(marked, media_type)

    assert SECRET.encode() not in bare
    with Image.open(io.BytesIO(bare)) as after, Image.open(io.BytesIO(marked)) as before:
        assert after.tobytes() == before.tobytes()
        assert after.info["icc_profile"] == profile
        assert after.getexif().get(0x112, 1) == (6 if media_type == "image/jpeg" else 1)
    assert bare_picture(bare, media_type) == bare


def test_a_moving_picture_plays_as_before_without_what_was_written_into_it() -> None:
    """Comments, texts, data of programs, and bytes between and behind the frames."""
    frames = [Image.new("P", (20, 10), color) for color in (1, 2, 3)]
    for frame in frames:
        frame.putpalette([n % 256 for n in range(768)])
    written = io.BytesIO()
    frames[0].save(
        written, "GIF", save_all=True, append_images=frames[1:], duration=[70, 80, 90], loop=3, comment=SECRET.encode()
    )
    whole = written.getvalue()
    piece = bytes([len(SECRET)]) + SECRET.encode() + b"\x00"
    looping = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x03\0"
    extras = [b"\x21\xfe", b"\x21\xff\x0bXMP DataXMP", b"\x21\x01\x0c" + bytes(12), looping]
    marked = whole[:-1] + b"".join(extra + piece for extra in extras) + b"\x3b" + SECRET.encode()
    assert marked.count(SECRET.encode()) == 6

    bare = bare_picture(marked, "image/gif")

    assert SECRET.encode() not in bare
    assert b"XMP" not in bare
    with Image.open(io.BytesIO(bare)) as after, Image.open(io.BytesIO(whole)) as before:
        assert (after.n_frames, after.info["loop"]) == (before.n_frames, 3) == (3, 3)
        for at in range(3):
            after.seek(at), before.seek(at)
            assert after.info["duration"] == before.info["duration"] == 70 + 10 * at
            assert after.tobytes() == before.tobytes()
    assert bare_picture(bare, "image/gif") == bare


KINDS = ("PNG L", "PNG RGB", "PNG RGBA", "PNG P", "JPEG L", "JPEG RGB", "JPEG CMYK", "GIF P", "WEBP RGB", "WEBP RGBA")


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_without_metadata_stays_the_same_picture(kind: str) -> None:
    format, mode = kind.split()
    plain = picture(format=format, mode=mode)

    bare = bare_picture(plain, f"image/{format.lower()}")

    with Image.open(io.BytesIO(bare)) as after, Image.open(io.BytesIO(plain)) as before:
        assert after.tobytes() == before.tobytes()


def test_a_copy_has_pictures_of_its_own(client: Client, owner: User, row: Conversation, address: str) -> None:
    reader = UserFactory()
    client.force_login(reader)

    client.post(f"{address}copy/", {"key": str(uuid4())})
    store.delete_conversation(owner, row.pk)

    copied = reader.conversations.get()
    (kept,) = Attachment.objects.all()
    assert (kept.owner, list(kept.conversations.all())) == (reader, [copied])
    assert attachments.open_bytes(kept) == PICTURE
    context = store.load_context(copied, copied.head)
    assert attachments.pictures_in(context.messages) == {kept.pk}
    assert "content-" not in str(context.to_wire())


def test_a_copy_has_no_more_of_a_picture_than_the_page_shows(client: Client, owner: User) -> None:
    """Attached or in the message itself: not where it was taken, and not what the owner calls it."""
    photo = taken()
    assert SECRET.encode() in photo
    shown = uploaded(owner, photo, f"{SECRET}.jpg")
    by_value = ImageBlock(source=Base64Source(media_type="image/jpeg", data=b64encode(taken(50)).decode()))
    row = talk(owner, (message("user", attachments.block_of(shown), by_value), answered("I see")))
    address = f"/s/{sharing.create_share(owner, row.pk)[1]}/"
    page = client.get(f"{address}attachments/{shown.pk}").content
    reader = UserFactory()
    client.force_login(reader)

    client.post(f"{address}copy/", {"key": str(uuid4())})

    copied = reader.conversations.get()
    first, second = copied.attachments.order_by("width")
    assert (first.name, first.owner, first.media_type, first.height) == ("picture.jpg", reader, "image/jpeg", 30)
    assert second.name == "picture.jpg"
    assert attachments.open_bytes(first) == page
    assert attachments.open_bytes(second) == bare_picture(taken(50), "image/jpeg")
    assert SECRET.encode() not in page + attachments.open_bytes(second)
    assert attachments.pictures_in(store.load_context(copied, copied.head).messages) == {first.pk, second.pk}
    assert (shown.name, attachments.open_bytes(shown)) == (f"{SECRET}.jpg", photo)


def test_a_copy_has_words_for_what_is_no_picture(client: Client, owner: User) -> None:
    blocks = [
        ImageBlock(source=Base64Source(media_type="image/png", data=b64encode(data).decode()))
        for data in (f"plain-{SECRET}".encode(), PICTURE[:60])
    ]
    row = talk(owner, (message("user", *blocks), answered("I see nothing")))
    reader = UserFactory()
    client.force_login(reader)

    client.post(f"/s/{sharing.create_share(owner, row.pk)[1]}/copy/", {"key": str(uuid4())})

    copied = reader.conversations.get()
    said = store.load_context(copied, copied.head).messages[0]
    assert said.blocks == (TextBlock(text="[picture]"),) * 2
    assert not Attachment.objects.exists()


def test_a_copy_has_words_for_a_file_that_the_page_does_not_offer(
    client: Client, owner: User, row: Conversation, address: str
) -> None:
    reader = UserFactory()
    client.force_login(reader)
    client.post(f"{address}copy/", {"key": str(uuid4())})
    copied = reader.conversations.get()
    context = store.load_context(copied, copied.head)
    assert context.messages[0].blocks[-1] == TextBlock(text="[file]")
    assert not attachments.files_in(context.messages)
    assert [each.media_type for each in reader.attachments.all()] == ["image/png"]
    text = Attachment.objects.get(media_type="text/plain")
    assert (text.owner, list(text.conversations.all())) == (owner, [row])


def test_a_fork_of_an_own_conversation_keeps_its_files_as_they_are(owner: User) -> None:
    photo, text = uploaded(owner, taken(), "cat.jpg"), uploaded(owner, b"Hello", "a.txt")
    row = talk(owner, (message("user", attachments.block_of(photo), attachments.block_of(text)), answered("Yes")))

    fork = store.fork(owner, row.pk)

    assert set(fork.attachments.all()) == {photo, text}
    assert store.load_context(fork, fork.head).messages == store.load_context(row, row.head).messages
    assert attachments.open_bytes(photo) == taken()


def test_the_same_form_twice_keeps_pictures_once(client: Client, address: str) -> None:
    reader = UserFactory()
    client.force_login(reader)
    key = str(uuid4())
    for _ in range(2):
        client.post(f"{address}copy/", {"key": key})
    assert reader.attachments.count() == 1


def test_pictures_are_read_outside_of_a_transaction(
    client: Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def noted(data: bytes, media_type: str) -> bytes:
        seen.append(connection.in_atomic_block)
        return bare_picture(data, media_type)

    monkeypatch.setattr("conversations.sharing.copies.bare_picture", noted)
    client.force_login(UserFactory())
    client.post(f"{address}copy/", {"key": str(uuid4())})
    assert seen == [False]


def test_a_copy_that_fails_leaves_no_pictures(
    client: Client, owner: User, row: Conversation, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: Any, **columns: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("conversations.sharing.copies.plant_tree", failing)
    reader = UserFactory()
    client.force_login(reader)
    with pytest.raises(RuntimeError, match="full"):
        client.post(f"{address}copy/", {"key": str(uuid4())})
    assert not reader.attachments.exists()


def test_a_picture_that_is_lost_stops_the_copy_and_says_so(
    client: Client, address: str, shown: Attachment, stored: Path
) -> None:
    for file in stored.rglob("*"):
        if file.is_file():
            file.unlink()
    assert client.get(f"{address}attachments/{shown.pk}").status_code == 404
    reader = UserFactory()
    client.force_login(reader)
    page = client.post(f"{address}copy/", {"key": str(uuid4())}).content.decode()
    assert "cannot be read any more" in page
    assert not reader.conversations.exists()
