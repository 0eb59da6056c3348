"""Facts of hosts and programs, from captured fields of what known commands print."""
