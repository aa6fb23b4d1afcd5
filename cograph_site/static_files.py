"""Static files: names with a hash of their content, compressed once, cached by browsers for a year."""

from __future__ import annotations

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

YEAR_SECONDS = 365 * 24 * 3600
NOT_SERVED = ["*.map", "redoc*", "*.LICENSE.txt"]


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Source maps are left out (they are larger than the scripts), so references to them must not be followed."""

    patterns = (("*.css", (r"""(?P<matched>url\(['"]{0,1}\s*(?P<url>.*?)["']{0,1}\))""",)),)


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    FOREVER = YEAR_SECONDS
