"""The events of a turn under their first name; bot/events.py holds them."""

from bot.events import (
    Answered as Answered,
)
from bot.events import (
    ApprovalAsked as ApprovalAsked,
)
from bot.events import (
    ApprovalClosed as ApprovalClosed,
)
from bot.events import (
    CommandFinished as CommandFinished,
)
from bot.events import (
    CommandProgress as CommandProgress,
)
from bot.events import (
    CommandRefused as CommandRefused,
)
from bot.events import (
    CommandStarted as CommandStarted,
)
from bot.events import (
    Event as Event,
)
from bot.events import (
    MilestoneReached as MilestoneReached,
)
from bot.events import (
    Noted as Noted,
)
from bot.events import (
    PlanChanged as PlanChanged,
)
from bot.events import (
    Screen as Screen,
)
from bot.events import (
    StepStarted as StepStarted,
)
from bot.events import (
    TextStreamed as TextStreamed,
)
from bot.events import (
    TurnStarted as TurnStarted,
)
