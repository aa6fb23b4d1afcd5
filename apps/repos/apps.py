from __future__ import annotations

from django.apps import AppConfig


class ReposConfig(AppConfig):
    name = "apps.repos"
    label = "repos"
    verbose_name = "Repositories"

    def ready(self) -> None:
        from apps.repos.registrations import register

        register()
