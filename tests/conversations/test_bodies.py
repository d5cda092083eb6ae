"""What clients may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agent.runtime.messages import Base64Source, ImageBlock
from conversations.bodies import StartBody, faults
from tests.agent.providers.pictures import JPEG, SVG, png


def start(media_type: str, data: str) -> StartBody:
    source = {"type": "base64", "mediaType": media_type, "data": data}
    body: dict[str, Any] = {"agent": "plain", "input": [{"type": "image", "source": source}]}
    return StartBody.model_validate(body)


def test_a_picture_gets_the_type_that_its_bytes_have() -> None:
    (block,) = start("image/png", JPEG).input
    assert block == ImageBlock(source=Base64Source(media_type="image/jpeg", data=JPEG))


@pytest.mark.parametrize(
    ("media_type", "data", "why"),
    [
        ("image/svg+xml", SVG, "it is no PNG, JPEG, GIF or WebP picture"),
        ("image/png", "aGVsbG8=", "it is no PNG, JPEG, GIF or WebP picture"),
        ("image/png", png(60_000, 60_000), "it is wider or higher than 8,000 pixels"),
        ("image/png", "A" * 5_000_004, "it is larger than 3,750,000 bytes"),
    ],
)
def test_a_picture_that_no_model_can_be_shown_is_refused_when_it_comes(media_type: str, data: str, why: str) -> None:
    """B84: with the reason, and without a word of the picture."""
    with pytest.raises(ValidationError) as refused:
        start(media_type, data)
    assert faults(refused.value) == f"input: Value error, the picture cannot be shown to a model: {why}"
