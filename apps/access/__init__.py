"""Who may read and write, who they are, and what was done: the room every other room asks."""
