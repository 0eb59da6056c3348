"""What the model can call: a file is a tool."""
