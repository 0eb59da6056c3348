"""Turns: the desk that hands them out, one turn end to end, its journal, approvals and milestones."""
