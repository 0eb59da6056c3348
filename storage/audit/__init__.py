"""The audit log: append-only rows, a chain over their digests, and its heads (docs/safety.md, Audit)."""

from storage.audit.erasing import erase
from storage.audit.events import AuditEvent
from storage.audit.rows import AuditRow, Pending, add, list_, page, pending
from storage.audit.sealing import seal

__all__ = ["AuditEvent", "AuditRow", "Pending", "add", "erase", "list_", "page", "pending", "seal"]
