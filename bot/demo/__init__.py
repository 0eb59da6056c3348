"""The parts of a demonstration: this machine as an SSH host, and the practice model."""
