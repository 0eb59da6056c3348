"""The terminal as a front end of the desk."""
