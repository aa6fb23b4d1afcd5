"""Django settings. Everything that an operator may choose comes from the environment by `configuration.py`."""

from __future__ import annotations

import os
from pathlib import Path

import dj_database_url

from cograph_site import configuration

BASE_DIR = Path(__file__).resolve().parent.parent

COGRAPH = configuration.read(os.environ)

DEBUG = COGRAPH.debug
SECRET_KEY = COGRAPH.django_secret_key or "unsafe-until-up-gives-a-key"
ALLOWED_HOSTS = list(COGRAPH.allowed_hosts)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
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
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "cograph_site.middleware.RefusalPages",
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
            "builtins": ["django.templatetags.static", "cograph_site.templatetags.cograph"],
        },
    }
]

DATABASES = {
    "default": dj_database_url.parse(
        os.environ.get("DATABASE_URL", "postgresql:///cograph"), conn_max_age=None, conn_health_checks=True
    )
}

AUTH_USER_MODEL = "access.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
ANONYMOUS_USER_NAME = None
SILENCED_SYSTEM_CHECKS = ["guardian.W001"]  # guardian is asked by apps.access alone, never through has_perm
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = COGRAPH.data_path / "static"
WHITENOISE_USE_FINDERS = True

LOGIN_URL = "access:login"
CSRF_FAILURE_VIEW = "cograph_site.errors.csrf_failure"

APPEND_SLASH = False

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
