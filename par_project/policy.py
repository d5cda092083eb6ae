"""The content security policy: strict everywhere, wider for the admin, whose theme evaluates expressions."""

from __future__ import annotations

from typing import Any

from csp.constants import NONCE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase

ADMIN: dict[str, Any] = {"script-src": [SELF, UNSAFE_EVAL, NONCE], "style-src": [SELF, UNSAFE_INLINE]}


class SitePolicyMiddleware(CSPMiddleware):
    """Adds the policy of the site, or the admin's to the pages of the admin."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        match = request.resolver_match
        if match is not None and "admin" in match.namespaces:
            parts.replace = {**ADMIN, **(parts.replace or {})}
        return parts
