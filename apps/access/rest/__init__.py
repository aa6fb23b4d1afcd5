"""The conventions of the REST door, so that a room's endpoints hold only their own call."""
