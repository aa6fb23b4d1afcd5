"""From a parsed document to the values of a page: header, links, problems. No database."""
