"""The checkpoint of a run: state, large arrays and log, from which a killed run goes on."""
