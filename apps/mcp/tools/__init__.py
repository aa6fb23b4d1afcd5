"""What the tools do: look up by the caller's scope, call a room, put its values into words."""
