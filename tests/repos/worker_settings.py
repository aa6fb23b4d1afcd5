"""Settings of real workers in tests: the product's own, and an observer that breaks on purpose."""

from cograph_site.settings import *  # noqa: F403
from cograph_site.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.repos.breaking_app.Breaking"]
