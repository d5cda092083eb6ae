"""The OpenAPI document against the API: whatever is sent, each answer is one that the document tells of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
import schemathesis
from django.conf import settings as site
from django.test import override_settings
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from conversations import sharing
from conversations.api import api
from conversations.api.errors import STATUS
from conversations.attachments import keep, read_file
from conversations.models import ApiToken
from par_project.asgi import django_application
from tests.conversations.attachments.files import picture, stored_in
from tests.conversations.store.writing import AGENT, turn
from tests.factories import AdministratorFactory, AgentProfileFactory

schema = schemathesis.openapi.from_dict(
    orjson.loads(orjson.dumps(api.get_openapi_schema(), option=orjson.OPT_NON_STR_KEYS))
)
schema.app = django_application
schema.config.request_timeout = 120
schema.config.phases.coverage.enabled = False
schema.config.phases.examples.enabled = False
schema.config.checks.not_a_server_error.expected_statuses = ["2xx", "3xx", "4xx", "503"]  # NOT_SERVED: no host is here

Ids = dict[str, str]


@pytest.fixture
def ids(transactional_db: None, tmp_path: Path) -> Iterator[Ids]:
    """A token of somebody who may do everything, and the ids of what they have."""
    AgentProfileFactory(slug=AGENT, is_default=True)
    user = AdministratorFactory()
    _, token = ApiToken.issue(user, "test", scopes=("read", "write", "admin"))
    with stored_in(tmp_path), override_settings(PAR=site.PAR.model_copy(update={"requests_per_minute": 100_000})):
        revision = turn(user, "Hello", "Good day")
        share, _ = sharing.create_share(user, revision.conversation_id)
        ran = revision.executions.get()
        yield {
            "token": token,
            "conversation_id": str(revision.conversation_id),
            "revision_id": str(revision.public_id),
            "execution_id": str(ran.pk),
            "attachment_id": str(keep(user, read_file(picture(), "a.png")).pk),
            "share_id": str(share.pk),
        }


@pytest.mark.django_db(transaction=True)
@schema.parametrize()
@settings(
    max_examples=5,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_each_answer_is_one_that_the_document_tells_of(case: schemathesis.Case, ids: Ids) -> None:
    """No status that is not written down, no body of another form, no failure; every error has the one shape."""
    for name, value in (case.path_parameters or {}).items():
        if name in ids and _is_id(value):
            case.path_parameters[name] = ids[name]
    answer = case.call_and_validate(
        headers={"Authorization": f"Bearer {ids['token']}"},
        excluded_checks=[negative_data_rejection, positive_data_acceptance],
    )
    if answer.status_code >= 400:
        error: dict[str, Any] = answer.json()["error"]
        assert STATUS[error["code"]] == answer.status_code
        assert error["message"]


def _is_id(value: object) -> bool:
    try:
        return bool(UUID(str(value)))
    except ValueError:
        return False
