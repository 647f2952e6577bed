"""Two daemons for one cluster: which one leads, with which epoch, and what the other knows meanwhile."""
