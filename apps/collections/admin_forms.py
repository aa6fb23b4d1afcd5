"""Forms of the admin pages of collections: fields and their words, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django import forms

from apps.collections.models import Collection
from apps.indexing.analyzer import languages

if TYPE_CHECKING:
    Base = forms.ModelForm[Collection]
else:
    Base = forms.ModelForm


class CollectionForm(Base):
    language = forms.ChoiceField(choices=lambda: [(one, one) for one in languages()], initial="english")

    class Meta:
        model = Collection
        fields: ClassVar[list[str]] = [
            "name",
            "description",
            "visibility",
            "language",
            "max_chars",
            "min_chars",
            "max_chunks",
            "query_log_opt_out",
        ]
        help_texts: ClassVar[dict[str, str]] = {
            "max_chars": "Characters of a chunk, 500 to 32,000. A change queues the cutting anew of all documents.",
            "min_chars": "Below this a chunk joins its neighbour; 0 to a quarter of the above.",
            "max_chunks": "Chunks of one document, 1 to 10,000. What lies beyond is not searchable.",
            "query_log_opt_out": "Searches that name only this collection are not logged.",
        }

    def _get_validation_exclusions(self) -> set[str]:
        """Uniqueness and bounds are the workflow's, whose words say what to do."""
        found: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]  # unknown to the stubs
        return {*found, "name", "slug", "owner", "max_chars", "min_chars", "max_chunks"}
