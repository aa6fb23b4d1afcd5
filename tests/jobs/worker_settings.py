"""Settings of real workers in tests: the product's own, and an app that registers kinds which break on purpose."""

from cograph_site.settings import *  # noqa: F403
from cograph_site.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.jobs.breaking_app.BreakingKinds"]
