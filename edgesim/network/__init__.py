"""The wireless cell: channel, links, devices, energy and the plan of a round."""
