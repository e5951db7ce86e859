"""What a device is beside its clock: heat, other load, battery, modem; and its state over time."""
