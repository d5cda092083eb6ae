"""A served site for each module, and an agent in it that speaks with the scripted provider of the running test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from agent.testing import ScriptedProvider
from tests.site import Site, free_port

SCRIPTED = """
from django.core.management import call_command
from agent.models import AgentProfile
url = "http://127.0.0.1:{port}/v1"
call_command("add_agent", "scripted", protocol="openai-chat", base_url=url, model="m", tools=True)
AgentProfile.objects.filter(slug="scripted").update(limits={{"maxModelOutputCharacters": 100_000_000}})
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), pace=0.01) as made:
        yield made


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return site.token()


@pytest.fixture(scope="module")
def provider_port(site: Site) -> int:
    """The address of the model of the agent `scripted`."""
    port = free_port()
    site.shell(SCRIPTED.format(port=port))
    return port


@pytest.fixture
async def provider(provider_port: int) -> AsyncIterator[ScriptedProvider]:
    """The model server behind the agent `scripted`."""
    made = ScriptedProvider()
    await made.start(provider_port)
    yield made
    await made.close()
    assert made.unexpected == 0
