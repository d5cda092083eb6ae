"""Admin of people and how they sign in."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from agent.admin.base import KeptWhileUsed
from conversations.models import User
from conversations.rights.deletion import close_account

admin.site.unregister([Group, EmailAddress, Authenticator])


@admin.register(User)
class UserAdmin(DjangoUserAdmin[User], KeptWhileUsed):
    kept_by = ("conversations", "executions")
    instead = "This person has conversations, so the account cannot be deleted: take away “Active” instead."
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["email", "username", "is_active", "is_staff", "last_login"]
    list_filter = ["is_active", "is_staff", "groups"]
    ordering = ["email"]
    filter_horizontal = []
    autocomplete_fields = ["groups"]
    # Single permissions belong to groups.
    fieldsets = [
        (None, {"fields": ["username", "email", "password"]}),
        ("Person", {"fields": ["first_name", "last_name"]}),
        ("Rights", {"fields": ["is_active", "is_staff", "is_superuser", "groups"]}),
        ("Times", {"fields": ["last_login", "date_joined"]}),
    ]
    readonly_fields = ["last_login", "date_joined"]
    add_fieldsets = [
        (None, {"classes": ["wide"], "fields": ["username", "email", "usable_password", "password1", "password2"]}),
    ]

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        close_account(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for person in queryset:
            close_account(person)

    def save_model(self, request: HttpRequest, obj: User, form: object, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            # Who makes the account vouches for the address; otherwise its owner could not sign in.
            EmailAddress.objects.get_or_create(user=obj, email=obj.email, defaults={"verified": True, "primary": True})


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    filter_horizontal = []


@admin.register(EmailAddress)
class EmailAddressAdmin(ModelAdmin):
    list_display = ["email", "user", "primary", "verified"]
    list_filter = ["primary", "verified"]
    list_select_related = ["user"]
    search_fields = ["email", "user__username"]
    autocomplete_fields = ["user"]


@admin.register(Authenticator)
class SecondFactorAdmin(ModelAdmin):
    """Shows that a second factor exists; deleting it lets a person start over."""

    list_display = ["user", "type", "created_at", "last_used_at"]
    list_filter = ["type"]
    list_select_related = ["user"]
    search_fields = ["user__email", "user__username"]
    fields = ["user", "type", "created_at", "last_used_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Authenticator | None = None) -> bool:
        return False
