"""Keys of a scenario for edge servers below a cloud."""
