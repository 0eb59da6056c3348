"""Slack as a front end of the desk."""
