"""Tables of a run: their readers, and what they may hold."""
