"""Environment -> frozen Settings. Unknown OPSTHREAD_ names and malformed values are all named at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.errors import SettingsError
from bot.redact import Redactor, load_redactor

PREFIX = "OPSTHREAD_"
PLAIN = {  # names without our prefix, shared with other programs
    "slack_bot_token": "SLACK_BOT_TOKEN",
    "slack_app_token": "SLACK_APP_TOKEN",
    "slack_signing_secret": "SLACK_SIGNING_SECRET",
    "slack_api_url": "SLACK_API_URL",
    "openai_api_key": "OPENAI_API_KEY",
    "openai_base_url": "OPENAI_BASE_URL",
    "database_url": "DATABASE_URL",
}


class Settings(BaseSettings):
    """Everything that can be set; docs/configuration.md and README's table are held against it by a test."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_file_encoding="utf-8",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
        env_ignore_empty=True,
    )

    slack_bot_token: SecretStr | None = Field(
        None, validation_alias="SLACK_BOT_TOKEN", description="bot token, xoxb-…"
    )
    slack_app_token: SecretStr | None = Field(
        None, validation_alias="SLACK_APP_TOKEN", description="app-level token for Socket Mode, xapp-…"
    )
    slack_signing_secret: SecretStr | None = Field(
        None, validation_alias="SLACK_SIGNING_SECRET", description="for HTTP mode"
    )
    slack_api_url: str = Field(
        "https://slack.com/api/",
        validation_alias="SLACK_API_URL",
        description="base address of every Slack call",
    )
    openai_api_key: SecretStr | None = Field(
        None, validation_alias="OPENAI_API_KEY", description="key of the model endpoint"
    )
    openai_base_url: str | None = Field(
        None, validation_alias="OPENAI_BASE_URL", description="any OpenAI-compatible endpoint"
    )
    database_url: SecretStr | None = Field(
        None, validation_alias="DATABASE_URL", description="postgresql://…; empty: the embedded Postgres"
    )

    model: str = Field("gpt-5-mini", description="the model's name at the endpoint")
    hosts: Path | None = Field(None, description="hosts.yml, or a folder of such files, one a team")
    policy: Path | None = Field(None, description="a file of extra rules for the gate")
    redact: Path | None = Field(None, description="a file of own patterns of secrets")
    embeddings: Path | None = Field(
        None,
        description="a folder with a model2vec model that orders recalled memories; unset: keywords alone",
    )
    data_dir: Path = Field(
        Path("~/.local/share/opsthread"), description="embedded Postgres, keys, practice parts"
    )
    http_port: int | None = Field(
        None, ge=1, le=65535, description="port of /healthz and /readyz; unset: off"
    )
    secret_key: SecretStr | None = Field(None, description="encrypts stored tokens, signs the audit head")
    audit_sink: Path | None = Field(None, description="a file that signed heads of the audit log go to")
    log_format: Literal["console", "json"] = Field("console", description="console or json")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least level that is logged"
    )
    command_name: str = Field("/ops", pattern=r"^/[a-z0-9_-]{1,31}$", description="the slash command")
    timezone: str = Field("UTC", description="zone of times shown to people, such as Europe/Berlin")
    max_steps: int = Field(25, ge=1, le=200, description="model replies in a turn")
    max_tokens: int = Field(60_000, ge=2_000, description="tokens of context in a request")
    max_turn_s: int = Field(
        900, ge=5, description="seconds a turn may work, waiting for approval not counted"
    )
    approval_s: int = Field(600, ge=5, le=86_400, description="seconds until an open approval expires")
    turns_per_person: int = Field(20, ge=1, description="requests of one person that may be unfinished")
    commands_per_minute: int = Field(
        120, ge=1, description="commands that one session, and one host, may see in a minute"
    )
    lease_s: float = Field(
        15.0, ge=1, le=300, description="seconds after which a dead process's turn is taken up"
    )
    model_budget_s: float = Field(120.0, ge=1, description="seconds of retries for one model reply")

    @field_validator("data_dir", "hosts", "policy", "redact", "audit_sink", mode="after")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return value.expanduser() if value else value

    @field_validator("database_url", mode="after")
    @classmethod
    def _postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql://")
        return value

    @field_validator("openai_base_url", mode="after")
    @classmethod
    def _web(cls, value: str | None) -> str | None:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return value

    @field_validator("slack_bot_token", "slack_app_token", mode="after")
    @classmethod
    def _token(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        """The two are easily swapped, and Slack's own answer to that says nothing."""
        wanted, what = {
            "slack_bot_token": (("xoxb-", "xoxe.xoxb-"), "the bot token, from Install App"),
            "slack_app_token": (("xapp-",), "the app-level token, from Basic Information"),
        }[info.field_name or ""]
        if value and not value.get_secret_value().startswith(wanted):
            raise ValueError(f"must begin with {wanted[0]}: it is {what}")
        return value

    @field_validator("slack_api_url", mode="after")
    @classmethod
    def _slash(cls, value: str) -> str:
        if not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return value if value.endswith("/") else value + "/"

    @field_validator("timezone", mode="after")
    @classmethod
    def _zone(cls, value: str) -> str:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError("is not a time zone such as Europe/Berlin") from error
        return value

    def redactor(self) -> Redactor:
        """What takes secrets out of texts: by the packaged rules, the operator's, and our own tokens by value."""
        ours = [
            self.slack_bot_token,
            self.slack_app_token,
            self.slack_signing_secret,
            self.openai_api_key,
            self.secret_key,
        ]
        values = [each.get_secret_value() for each in ours if each is not None]
        if self.database_url is not None:
            values += [unquote(urlsplit(self.database_url.get_secret_value()).password or "")]
        return load_redactor(values, self.extra_patterns())

    def extra_rules(self) -> str | None:
        """The text of the operator's rules, None without any. Raises SettingsError."""
        return _text_of("policy", self.policy)

    def extra_patterns(self) -> str | None:
        """The text of the operator's patterns of secrets, None without any. Raises SettingsError."""
        return _text_of("redact", self.redact)


def variable(field: str) -> str:
    """The environment variable that sets a field."""
    return PLAIN.get(field, PREFIX + field.upper())


def load() -> Settings:
    """Read the environment and .env. Raises SettingsError that names every fault."""
    faults = [f"{name} is not a setting of opsthread" for name in _unknown()]
    try:
        settings = Settings()
    except ValidationError as error:
        faults += [f"{_named(e['loc'])}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()]
        raise SettingsError("; ".join(faults) + ". See docs/configuration.md") from None
    if faults:
        raise SettingsError("; ".join(faults) + ". See docs/configuration.md")
    return settings


def _unknown() -> list[str]:
    known = {variable(name) for name in Settings.model_fields}
    given = {*os.environ, *(dotenv_values(".env") if Path(".env").is_file() else {})}
    return sorted(n for n in given if n.upper().startswith(PREFIX) and n.upper() not in known)


def _text_of(field: str, path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "not UTF-8"
        raise SettingsError(f"{variable(field)}: cannot read {path}: {said}") from None


def _named(loc: tuple[int | str, ...]) -> str:
    name = str(loc[0])
    return variable(name) if name in Settings.model_fields else name
