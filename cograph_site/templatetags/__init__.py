"""Tags and filters of the pages; built into every template by the settings."""
