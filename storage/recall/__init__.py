"""Recall by keywords: what words a text has, and where they are found again."""
