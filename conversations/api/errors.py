"""One shape of error below the base path: `{"error": {"code", "message"}}` (R153, R156)."""

from __future__ import annotations

import logging
from typing import Any

import orjson
from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from agent.runtime.exceptions import AgentError
from conversations.exceptions import RateLimited
from conversations.middleware import AsyncMiddleware

logger = logging.getLogger("conversations.api")

RETRY_AFTER = 5  # seconds

STATUS = {
    "INVALID_ARGUMENT": 400,
    "IMPORT_INVALID": 400,
    "AUTH_REQUIRED": 401,
    "FORBIDDEN": 403,
    "ADMIN_FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "AGENT_NOT_FOUND": 404,
    "CONVERSATION_NOT_FOUND": 404,
    "EXECUTION_NOT_FOUND": 404,
    "REVISION_NOT_FOUND": 404,
    "SHARE_NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "ATTACHMENT_NOT_FOUND": 404,
    "CONVERSATION_CONFLICT": 409,
    "INVALID_STATE": 409,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "ATTACHMENT_UNFIT": 422,
    "RATE_LIMITED": 429,
    "AGENT_EXECUTION_FAILED": 500,
    "ATTACHMENT_MISSING": 500,
    "INTERNAL_ERROR": 500,
    "REVISION_CORRUPT": 500,
    "DRAINING": 503,
    "NOT_SERVED": 503,
}
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "AUTH_REQUIRED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    422: "INVALID_ARGUMENT",
    429: "RATE_LIMITED",
}


def problem(status: int, code: str, message: str, **more: Any) -> HttpResponse:
    """Return the error envelope."""
    body = orjson.dumps({"error": {"code": code, "message": message, **more}})
    response = HttpResponse(body, status=status, content_type="application/json")
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    if status == 415:
        response["Accept"] = "application/json"
    if code in ("DRAINING", "RATE_LIMITED"):
        response["Retry-After"] = str(RETRY_AFTER)
    return response


def install(api: NinjaAPI) -> None:
    """Give every error of the API the one shape."""

    @api.exception_handler(AgentError)
    def refused(request: HttpRequest, error: AgentError) -> HttpResponse:
        current = getattr(error, "current_revision", None)
        more = {} if current is None else {"currentRevision": current}
        made = problem(STATUS.get(error.code, 500), error.code, error.message, **more)
        if isinstance(error, RateLimited):
            made["Retry-After"] = str(error.retry_after)
        return made

    @api.exception_handler(ValidationError)
    def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        found = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors)
        return problem(400, "INVALID_ARGUMENT", found)

    @api.exception_handler(HttpError)
    def http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
        if isinstance(error.__cause__, AgentError):  # of the parser
            return refused(request, error.__cause__)
        return problem(error.status_code, _CODES.get(error.status_code, "INVALID_ARGUMENT"), str(error))

    @api.exception_handler(AuthenticationError)
    def unknown(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        return problem(401, "AUTH_REQUIRED", "sign in, or send a valid bearer token")

    @api.exception_handler(Http404)
    def not_found(request: HttpRequest, error: Http404) -> HttpResponse:
        return problem(404, "NOT_FOUND", "there is nothing here")

    @api.exception_handler(PermissionDenied)
    def denied(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
        return problem(403, "FORBIDDEN", "this is not allowed")

    @api.exception_handler(RequestDataTooBig)
    def too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
        return problem(413, "PAYLOAD_TOO_LARGE", "the body is too large")

    @api.exception_handler(Exception)
    def failed(request: HttpRequest, error: Exception) -> HttpResponse:
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        return problem(500, "INTERNAL_ERROR", "the server failed")


class EnvelopeMiddleware(AsyncMiddleware):
    """Gives the one shape to errors below the base path that never reach the API: unknown paths, methods, bad bytes."""

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        response = await self.get_response(request)
        ours = request.path_info.startswith(settings.PAR.base_path + "/") and response.status_code >= 400
        if not ours or response.get("Content-Type", "").startswith("application/json"):
            return response
        code = _CODES.get(response.status_code, "INTERNAL_ERROR" if response.status_code >= 500 else "INVALID_ARGUMENT")
        made = problem(response.status_code, code, response.reason_phrase.lower())
        made.cookies = response.cookies
        for name, value in response.items():
            if name not in ("Content-Type", "Content-Length"):
                made[name] = value
        return made
