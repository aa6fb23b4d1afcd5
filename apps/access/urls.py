"""Addresses of the pages of identity."""

from __future__ import annotations

from django.urls import path

from apps.access import provider_views, views

app_name = "access"

urlpatterns = [
    path("login", views.login, name="login"),
    path("login/provider", provider_views.begin, name="oidc-begin"),
    path("login/provider/callback", provider_views.callback, name="oidc-callback"),
    path("logout", views.logout, name="logout"),
    path("account", views.account, name="account"),
    path("account/tokens", views.tokens_page, name="tokens"),
    path("account/tokens/<uuid:token_id>/revoke", views.revoke_page, name="token-revoke-page"),
    path("account/tokens/<uuid:token_id>/revoke/now", views.revoke_token, name="token-revoke"),
    path("view-as", views.view_as_page, name="view-as"),
    path("view-as/stop", views.view_as_stop, name="view-as-stop"),
]
