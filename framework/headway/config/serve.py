"""``serve:`` the interface over HTTP: where it listens, and how it knows who asks."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from headway.config.section import Section

#: What the user that asks may do: read, act on the own jobs, act as an operator.
Scope = Literal["read", "user", "operator"]
_ALL: list[Scope] = ["read", "user", "operator"]
_Path = Annotated[str, pydantic.Field(min_length=1)]


class TlsConfig(Section):
    """TLS by files; both or neither."""

    certificate: _Path | None = pydantic.Field(
        default=None, description="PEM file with the certificate and its chain; default: no TLS"
    )
    key: _Path | None = pydantic.Field(default=None, description="PEM file with its private key")

    @pydantic.model_validator(mode="after")
    def _both(self) -> TlsConfig:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key, or neither; found one of them")
        return self


class JwtConfig(Section):
    """Slurm's tokens (``scontrol token``), by the key that Slurm has."""

    key: _Path | None = pydantic.Field(
        default=None, description="Slurm's jwt_hs256.key: tokens are signed by HS256 with it"
    )
    jwks: _Path | None = pydantic.Field(
        default=None, description="file of public keys (JWKS): tokens are signed by RS256 with one of them"
    )
    claim: str = pydantic.Field(default="sun", min_length=1, description="the claim that names the user")
    leeway: float = pydantic.Field(
        default=10.0, ge=0, le=300, description="seconds by which clocks may differ"
    )
    scopes: list[Scope] = pydantic.Field(
        default_factory=lambda: list(_ALL), description="what is allowed with such a token"
    )

    @pydantic.model_validator(mode="after")
    def _one_kind(self) -> JwtConfig:
        if self.key is not None and self.jwks is not None:
            raise ValueError("key (HS256) or jwks (RS256), found both")
        return self


class ProxyConfig(Section):
    """A proxy before this, that knows the user and names it in a header."""

    header: str = pydantic.Field(
        default="X-Remote-User", pattern="^[A-Za-z][A-Za-z0-9-]*$", description="header that names the user"
    )
    users: list[str] = pydantic.Field(
        default_factory=list,
        description="users that the proxy may run as, which connects through a Unix socket of `listen`",
    )
    addresses: list[str] = pydantic.Field(
        default_factory=list, description="addresses that the proxy may connect from; needs `secret`"
    )
    secret: _Path | None = pydantic.Field(
        default=None,
        description="file with the word that the proxy sends in the header X-Headway-Proxy-Secret",
    )
    scopes: list[Scope] = pydantic.Field(
        default_factory=lambda: list(_ALL), description="what users may do that come through the proxy"
    )

    @pydantic.model_validator(mode="after")
    def _no_bare_addresses(self) -> ProxyConfig:
        if self.addresses and self.secret is None:
            raise ValueError(
                "secret beside addresses, because every user of those machines can connect from there; "
                "found none"
            )
        return self


class ServeLimits(Section):
    """What clients of the interface take at most."""

    connections: int = pydantic.Field(default=1000, ge=1, le=100_000, description="connections in all")
    connections_each: int = pydantic.Field(
        default=300,
        ge=1,
        le=100_000,
        description="connections of one address, or of one user on a Unix socket",
    )
    streams: int = pydantic.Field(default=500, ge=0, le=100_000, description="streams of changes in all")
    streams_each: int = pydantic.Field(
        default=50, ge=0, le=100_000, description="streams of changes of one user"
    )
    patience: float = pydantic.Field(
        default=10.0, gt=0, le=300, description="seconds in which a client sends a whole request"
    )


class ServeConfig(Section):
    """``headway serve``."""

    listen: list[str] = pydantic.Field(
        default=["127.0.0.1:8642"],
        min_length=1,
        description="addresses: HOST:PORT, [IPv6]:PORT, or unix:/PATH, where the system says who asks",
    )
    mode: str = pydantic.Field(
        default="0666", pattern="^0?[0-7]{3}$", description="access mode of the Unix socket"
    )
    hosts: list[str] = pydantic.Field(
        default_factory=list, description="names that clients call this machine by, besides localhost"
    )
    plain: bool = pydantic.Field(
        default=False, description="true: no TLS on addresses that other machines reach"
    )
    tokens: _Path | None = pydantic.Field(
        default=None, description="file of own tokens; default: the journal's file with .tokens appended"
    )
    tls: TlsConfig = TlsConfig()
    jwt: JwtConfig = JwtConfig()
    proxy: ProxyConfig = ProxyConfig()
    limits: ServeLimits = ServeLimits()
