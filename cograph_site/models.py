from __future__ import annotations

from django.db import models


class GivenSample(models.Model):
    """A sample that this deployment was given once. The row outlives the sample: what was deleted never comes back."""

    name = models.CharField(max_length=200, unique=True)
    given_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "given sample"

    def __str__(self) -> str:
        return self.name
