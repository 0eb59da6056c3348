"""Preferences, from a person's own words alone."""
