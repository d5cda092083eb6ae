"""Settings of the site. What an operator can change is listed in docs/configuration.md."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
import environ
from csp.constants import NONCE, NONE, SELF
from django.templatetags.static import static

from agent.conf import ParSettings, django_secret
from agent.keys import development_keys
from par_project import __version__
from par_project.database import database, redis_url

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent

env_file = os.environ.get("PAR_ENV_FILE", str(BASE_DIR / ".env"))
if env_file and Path(env_file).is_file():
    environ.Env.read_env(env_file)  # what is already in the environment wins

PAR = ParSettings.from_environment(os.environ)
if not PAR.data_dir.is_absolute():
    PAR = PAR.model_copy(update={"data_dir": BASE_DIR / PAR.data_dir})
if PAR.development and not PAR.secret_keys:
    PAR = PAR.model_copy(update={"secret_keys": development_keys(PAR.data_dir)})

DEBUG = PAR.development
# Without a key (production before it is configured, image builds) nothing that is signed outlives the process.
SECRET_KEY, *SECRET_KEY_FALLBACKS = [django_secret(key) for key in PAR.secret_keys] or [secrets.token_urlsafe(48)]

ALLOWED_HOSTS = sorted({urlsplit(origin).hostname or "" for origin in PAR.origins})
CSRF_TRUSTED_ORIGINS = list(PAR.origins)

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "channels",
    "agent",
    "conversations",
]

# Every one of these works in asynchronous requests without a thread of its own.
MIDDLEWARE = [
    "conversations.health.HealthMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "par_project.policy.SitePolicyMiddleware",
    "conversations.api.errors.EnvelopeMiddleware",  # before all that may refuse a request
    "conversations.sessions.CleanRequestMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "conversations.api.throttling.RateLimitMiddleware",
]

VERSION = __version__
ROOT_URLCONF = "par_project.urls"
ASGI_APPLICATION = "par_project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES: dict[str, dict[str, Any]] = {}
try:
    DATABASES["default"] = database(os.environ.get("DATABASE_URL"), PAR.data_dir)
except ValueError as error:  # the check agent.E001 says it; no other database may take its place
    PAR = PAR.model_copy(update={"problems": (*PAR.problems, str(error))})
    DATABASES["default"] = {"ENGINE": "django.db.backends.dummy"}
if not os.environ.get("DATABASE_URL"):
    with suppress(OSError):  # opening the database says it
        PAR.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = os.environ.get("REDIS_URL") or None
try:
    REDIS_URL = REDIS_URL and redis_url(REDIS_URL)
except ValueError as error:
    PAR = PAR.model_copy(update={"problems": (*PAR.problems, str(error))})
    REDIS_URL = None
# No channel layer yet: with one, every socket would hold a subscription that nothing uses.
CACHES: dict[str, dict[str, Any]]
if REDIS_URL:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

AUTH_USER_MODEL = "conversations.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"

ACCOUNT_ADAPTER = "conversations.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_PREVENT_ENUMERATION = "strict"
ACCOUNT_REAUTHENTICATION_REQUIRED = True
MFA_ADAPTER = "conversations.accounts.MFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
ALLAUTH_TRUSTED_PROXY_COUNT = PAR.trusted_proxies
NINJA_NUM_PROXIES = PAR.trusted_proxies

EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
if not DEBUG:
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    globals().update(environ.Env.email_url_config(os.environ.get("EMAIL_URL") or "smtp://localhost:25"))

SESSION_ENGINE = "conversations.session_store"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEBUG
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if PAR.trusted_proxies:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = PAR.max_frame_bytes

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "attachments": {
        "BACKEND": "conversations.attachments.storage.WholeFileStorage",
        "OPTIONS": {"location": PAR.data_dir / "attachments"},
    },
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if PAR.development
        else "par_project.static.HashedModules"
    },
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"our names": {"()": "par_project.logs.NameTheSetting"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": [], "level": "INFO"},
        "django.security.DisallowedHost": {"filters": ["our names"]},
        "django.server": {"handlers": [], "propagate": True},
        "daphne": {"level": "WARNING"},
    },
}

UNFOLD = {
    "SITE_TITLE": "PAR",
    "SITE_HEADER": "PAR",
    "SITE_SUBHEADER": "Agents for everyone here",
    "SITE_SYMBOL": "forum",
    "SITE_URL": "/",
    "DASHBOARD_CALLBACK": "par_project.dashboard.dashboard",
    "STYLES": [lambda request: static("agent/admin.css")],
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("par/icon.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
}
