"""Long-term memories: kept, superseded, shared, forgotten, found. Every function is told the team and the owner."""
