"""The MCP server: a tool table over the rooms below."""
