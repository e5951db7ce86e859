"""The whole band over time: whose turn it is, where devices start to send at different times."""
