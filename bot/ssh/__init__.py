"""Hosts, connections and running commands on them."""
