"""Edge servers below a cloud: who belongs to which, what travels between them, and when."""
