"""Settings of the test suite: nothing of the developer's own configuration but DATABASE_URL and REDIS_URL."""

from __future__ import annotations

import atexit
import base64
import os
import shutil
import tempfile
from pathlib import Path

from agent.conf import OTHER_NAMES

for name in [name for name in os.environ if name.startswith("PAR_") and name not in OTHER_NAMES]:
    del os.environ[name]
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_ORG_ID", "PORT"):
    os.environ.pop(name, None)

TEST_DIR = Path(tempfile.mkdtemp(prefix="par-test-"))
atexit.register(shutil.rmtree, TEST_DIR, ignore_errors=True)

os.environ |= {
    "PAR_ENV_FILE": "",
    "PAR_ENVIRONMENT": "development",
    "PAR_DATA_DIR": str(TEST_DIR),
    "PAR_SECRET_KEYS": base64.b64encode(bytes(range(32))).decode(),
    "PAR_DEMO_PACE": "0",
}

from par_project.settings import *  # noqa: E402, F403
from par_project.settings import ALLOWED_HOSTS, CACHES, DATABASES  # noqa: E402

DEBUG = False
ALLOWED_HOSTS += ["testserver"]

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, never shared memory: other threads and connections must see it.
    DATABASES["default"]["TEST"] = {"NAME": str(TEST_DIR / "test.sqlite3")}
else:
    DATABASES["default"]["TEST"] = {"NAME": f"test_par_{os.getpid()}"}

CACHES["default"]["KEY_FUNCTION"] = "tests.services.cache_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
