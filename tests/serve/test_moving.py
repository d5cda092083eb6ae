"""Export and import over the real server: files larger than a frame, while runs go on."""

from __future__ import annotations

import json

import httpx

from tests.conversations.moving.files import chatgpt
from tests.site import Site

MEGABYTE = 1024 * 1024


async def test_a_large_file_goes_in_and_comes_out_again(site: Site, token: str) -> None:
    said = "The river is long, and nobody knows why. 数据 " * 40
    nodes = {"n0": (None, "user", said)}
    nodes |= {f"n{at}": (f"n{at - 1}", "assistant" if at % 2 else "user", said) for at in range(1, 40)}
    file = json.dumps([chatgpt(nodes, id=f"serve-{at}") for at in range(40)]).encode()
    assert len(file) > 3 * MEGABYTE
    async with httpx.AsyncClient(
        base_url=site.address, headers={"Authorization": f"Bearer {token}"}, timeout=120
    ) as http:
        sent = await http.post("/ai/imports", content=file)
        assert sent.status_code == 200, sent.text
        assert sent.json()["created"] == 40
        assert (await http.post("/ai/imports", content=file)).json()["unchanged"] == 40
        one = await http.get(f"/ai/conversations/{sent.json()['conversations'][0]}/export?format=markdown")
        assert one.text.count("The river is long") == 1600
        whole = await http.get("/ai/export?format=json")
        assert len(whole.json()["conversations"]) >= 40
        again = await http.post("/ai/imports", content=whole.content)
    assert again.json()["created"] == again.json()["updated"] == 0


async def test_a_stranger_imports_nothing(site: Site) -> None:
    async with httpx.AsyncClient(base_url=site.address) as http:
        answer = await http.post("/ai/imports", content=b"x" * (2 * MEGABYTE))
    assert answer.status_code == 401
