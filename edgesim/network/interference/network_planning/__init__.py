"""Plans of a network's rounds: a problem per sector, the interference expected between them."""
