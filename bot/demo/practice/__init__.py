"""The practice model: fixed rules behind a real chat-completions endpoint, for trying opsthread without a key.

reading (request -> Talk) · topics (question -> what to look at) · output and findings (output -> sentences)
· thinking (Talk -> the next reply) · server (HTTP). All but the server are pure.
"""

from bot.demo.practice.server import PracticeModel

__all__ = ["PracticeModel"]
