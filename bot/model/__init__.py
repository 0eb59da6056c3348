"""The language model behind an OpenAI-compatible endpoint: one reply at a time, streamed.

types is what the loop sees; client asks; stream reads what comes back; faults says what went wrong.
"""

from bot.errors import ContextTooLong, ModelError, ModelRefused, ModelUnavailable
from bot.model.client import OpenAIModel
from bot.model.types import ChatMessage, Model, Reply, ToolSchema, Usage

__all__ = [
    "ChatMessage",
    "ContextTooLong",
    "Model",
    "ModelError",
    "ModelRefused",
    "ModelUnavailable",
    "OpenAIModel",
    "Reply",
    "ToolSchema",
    "Usage",
]
