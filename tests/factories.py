"""Rows for tests."""

from __future__ import annotations

from typing import Any

import factory
from allauth.account.models import EmailAddress
from django.utils import timezone

from agent.models import AgentProfile, ModelEndpoint, ToolRecord
from agent.runtime.ids import uuid7
from conversations.models import ApiToken, Conversation, Execution, ExecutionStatus, HostProcess, User

PASSWORD = "a quiet river 42"


class UserFactory(factory.django.DjangoModelFactory[User]):
    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person{n}")
    email = factory.LazyAttribute(lambda user: f"{user.username}@example.org")
    password = factory.django.Password(PASSWORD)

    @factory.post_generation
    def verified(self, create: bool, extracted: Any, **kwargs: Any) -> None:
        if create:
            EmailAddress.objects.create(user=self, email=self.email, verified=True, primary=True)


class AdministratorFactory(UserFactory):
    is_staff = True
    is_superuser = True


class ModelEndpointFactory(factory.django.DjangoModelFactory[ModelEndpoint]):
    class Meta:
        model = ModelEndpoint

    slug = factory.Sequence(lambda n: f"endpoint-{n}")
    name = factory.LazyAttribute(lambda row: row.slug)
    protocol = "demo"


class AgentProfileFactory(factory.django.DjangoModelFactory[AgentProfile]):
    class Meta:
        model = AgentProfile

    slug = factory.Sequence(lambda n: f"agent-{n}")
    name = factory.LazyAttribute(lambda row: row.slug)
    endpoint = factory.SubFactory(ModelEndpointFactory)
    model = "demo"


class ToolRecordFactory(factory.django.DjangoModelFactory[ToolRecord]):
    class Meta:
        model = ToolRecord

    name = factory.Sequence(lambda n: f"tool_{n}")
    app = "tests"
    description = "A tool."
    last_seen = factory.LazyFunction(timezone.now)


class ConversationFactory(factory.django.DjangoModelFactory[Conversation]):
    class Meta:
        model = Conversation

    owner = factory.SubFactory(UserFactory)
    agent = factory.SubFactory(AgentProfileFactory)
    title = factory.Sequence(lambda n: f"Conversation {n}")


class HostProcessFactory(factory.django.DjangoModelFactory[HostProcess]):
    class Meta:
        model = HostProcess

    channel = "tests"
    heartbeat_at = factory.LazyFunction(timezone.now)


class ExecutionFactory(factory.django.DjangoModelFactory[Execution]):
    class Meta:
        model = Execution

    conversation = factory.SubFactory(ConversationFactory)
    user = factory.SelfAttribute("conversation.owner")
    agent = factory.SelfAttribute("conversation.agent")
    request_id = factory.LazyFunction(uuid7)
    request_digest = "0" * 64
    status = ExecutionStatus.RUNNING


class ApiTokenFactory(factory.django.DjangoModelFactory[ApiToken]):
    """The plain token is `row.plain`."""

    class Meta:
        model = ApiToken

    user = factory.SubFactory(UserFactory)
    name = "a program"

    @classmethod
    def _create(cls, model_class: type[ApiToken], *args: Any, **kwargs: Any) -> ApiToken:
        row, plain = model_class.issue(kwargs.pop("user"), kwargs.pop("name"), **kwargs)
        row.plain = plain  # type: ignore[attr-defined]
        return row
