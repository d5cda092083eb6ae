"""Files in a shared conversation: pictures are shown below the link, all else is not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from agent.runtime.messages import TextBlock
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
