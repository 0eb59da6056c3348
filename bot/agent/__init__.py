"""The ReAct loop and what the model is told."""
