from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from par_project.static import serve_static


async def nothing(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"site"})


async def get(application: Any, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }
    await application(scope, receive, send)
    found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


async def test_development_serves_the_sources_as_they_are_now() -> None:
    application = serve_static(nothing)
    status, headers, body = await get(application, "/static/agent/admin.css")
    assert status == 200
    assert b".par-json" in body
    assert headers["x-content-type-options"] == "nosniff"
    assert "max-age=0" in headers["cache-control"]
    assert "access-control-allow-origin" not in headers
    assert (await get(application, "/static/unfold/css/styles.css"))[0] == 200


@pytest.mark.parametrize("path", ["/", "/static/no.css", "/static/../agent/conf.py", "/static/agent/../../conf.py"])
async def test_anything_else_goes_to_the_site(path: str) -> None:
    status, _, body = await get(serve_static(nothing), path)
    assert (status, body) == (404, b"site")


async def test_production_serves_hashed_files_for_ever(tmp_path: Path, settings: Settings) -> None:
    settings.PAR = settings.PAR.model_copy(update={"environment": "production"})
    settings.STATIC_ROOT = tmp_path
    settings.STATICFILES_DIRS = []
    settings.INSTALLED_APPS = ["django.contrib.staticfiles", "agent"]
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "par_project.static.HashedModules"},
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    (hashed,) = [path for path in (tmp_path / "agent").glob("admin.*.css") if path.suffix == ".css"]
    application = serve_static(nothing)
    status, headers, _ = await get(application, f"/static/agent/{hashed.name}")
    assert status == 200
    assert "immutable" in headers["cache-control"]
    status, headers, _ = await get(application, "/static/agent/admin.css")
    assert (status, "immutable" in headers["cache-control"]) == (200, False)
    _, headers, _ = await get(application, f"/static/agent/{hashed.name}", accept_encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    assert (await get(application, f"/static/agent/{hashed.name}", method="HEAD"))[0] == 200
