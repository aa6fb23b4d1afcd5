"""Django settings. Everything that an operator may choose comes from the environment by `configuration.py`."""

from __future__ import annotations

import dataclasses
import os
import secrets
from pathlib import Path

import dj_database_url

from apps.access.key_files import read_key
from cograph_site import configuration, data_folder, logs
from cograph_site.postgres import home

BASE_DIR = Path(__file__).resolve().parent.parent

COGRAPH = configuration.read(os.environ)
COGRAPH = dataclasses.replace(
    COGRAPH,
    # The key file is made by `up`. Without one a command still runs: with a key that ends with the process, so that
    # nothing is ever signed with a key that somebody could know.
    django_secret_key=COGRAPH.django_secret_key
    or read_key(COGRAPH.data_path / data_folder.DJANGO_KEY)
    or secrets.token_urlsafe(50),
)

DEBUG = COGRAPH.debug
SECRET_KEY = COGRAPH.django_secret_key
ALLOWED_HOSTS = list(COGRAPH.allowed_hosts)

INSTALLED_APPS = [
    "cograph_site.admin_apps.PortalAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "guardian",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "django_q",
    "apps.access",
    "apps.jobs",
    "apps.indexing",
    "apps.repos",
    "apps.collections",
    "apps.knowledge_graph",
    "apps.retrieval",
    "apps.mcp",
    "cograph_site",
]

MIDDLEWARE = [
    "apps.access.middleware.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "cograph_site.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "apps.access.sessions.AccountMiddleware",
    "apps.access.middleware.SignInGate",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "cograph_site.urls"
WSGI_APPLICATION = "cograph_site.wsgi.application"

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
                "cograph_site.context.portal",
            ],
            "builtins": [
                "django.templatetags.static",
                "cograph_site.templatetags.cograph",
                "cograph_site.templatetags.kept",
            ],
        },
    }
]

DATABASES = {
    "default": dj_database_url.parse(
        configuration.database_url(os.environ) or home.existing(COGRAPH.data_path).url(),
        conn_max_age=None,
        conn_health_checks=True,
    )
}

AUTH_USER_MODEL = "access.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
ANONYMOUS_USER_NAME = None
LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.access.rest.authentication.TokenAuthentication",
        "apps.access.rest.authentication.CsrfSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["apps.access.rest.parsers.BoundedJsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["apps.access.rest.rendering.PlainJsonRenderer"],
    "DEFAULT_SCHEMA_CLASS": "apps.access.rest.schema.DoorSchema",
    "EXCEPTION_HANDLER": "apps.access.rest.problems.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Cograph",
    "DESCRIPTION": "Repositories, collections, search and the knowledge graph, as far as the caller may read.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False, "validatorUrl": None},
    "POSTPROCESSING_HOOKS": [],  # no names for enums: two rooms with a field of one name would clash
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
            "token": {"type": "http", "scheme": "bearer", "bearerFormat": "cgr_…"},
        }
    },
}

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
# The portal speaks this language only; to ask which one it is took about a tenth of the time of a page.
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = COGRAPH.data_path / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "cograph_site.static_files.HashedFiles"},
}
CSRF_FAILURE_VIEW = "cograph_site.errors.csrf_failure"

APPEND_SLASH = False

# Cookies are for https only; apps.access.security takes the mark off for plain http on this very machine.
SESSION_ENGINE = "apps.access.sessions"
SESSION_COOKIE_AGE = COGRAPH.session.hours * 3600
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
CSRF_COOKIE_HTTPONLY = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if COGRAPH.trusted_proxies:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SILENCED_SYSTEM_CHECKS = [
    "guardian.W001",  # guardian is asked by apps.access alone, never through has_perm
    "security.W004",  # HSTS belongs to the proxy that ends TLS; so does the redirect to https
    "security.W008",
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
DATA_UPLOAD_MAX_NUMBER_FILES = COGRAPH.upload.batch_files + 1  # one more is refused by the address that takes them

# The Job row is the truth and a message may vanish or come twice, so the queue itself never tries again.
# timeout > longest deadline of a kind (6 h); retry > timeout. One worker a cluster: a hung one is replaced whole.
Q_CLUSTER = {
    "name": "cograph",
    "broker_class": "apps.jobs.broker.CanaryBroker",
    "orm": "default",
    "workers": 1,
    "daemonize_workers": False,
    "queue_limit": 1,
    "timeout": 30000,
    "retry": 40000,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "scheduler": False,
    "catch_up": False,
    "recycle": 500,
    "max_rss": 1_500_000,
    "log_level": "WARNING",
}

LOGGING = logs.configuration(COGRAPH.log_level)
