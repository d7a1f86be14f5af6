"""Why there is no answer: what aiohttp and the system raise, as a kind and a sentence."""

from __future__ import annotations

import ssl

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientResponseError,
    ClientSSLError,
    InvalidURL,
    NonHttpUrlClientError,
)
from aiohttp.http_exceptions import HttpProcessingError

from recrawl.fetch.guard import ForbiddenAddress
from recrawl.model.fetched import FailureKind

NETWORK_ERRORS = (ClientError, HttpProcessingError, OSError, ValueError)
"""All that a request can raise because of a server, a network, or the request's own text."""


class NoAnswer(Exception):
    """Ends a fetch without an answer. `reason` is a clause that follows the URL in the failure's message."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason


def no_answer(error: Exception) -> NoAnswer:
    """What a network error means."""
    match error:
        case TimeoutError():
            return NoAnswer(FailureKind.TIMEOUT, "took too long")
        case ClientConnectorCertificateError():
            return NoAnswer(FailureKind.TLS, f"its certificate is not valid: {_certificate(error)}")
        case ClientSSLError():
            return NoAnswer(FailureKind.TLS, f"no secure connection: {_tls(error.os_error)}")
        case ClientConnectorDNSError():
            return NoAnswer(FailureKind.UNKNOWN_HOST, f"the name {error.host} does not resolve")
        case ClientConnectorError():
            return _unconnected(error.os_error)
        case ClientPayloadError():
            return NoAnswer(FailureKind.TRUNCATED, "the body ended before its announced end")
        case ClientResponseError() | HttpProcessingError():
            return NoAnswer(FailureKind.PROTOCOL, f"the answer is not valid HTTP: {_first_line(error.message)}")
        case UnicodeError():
            # The system's resolver encodes names by IDNA 2003, which refuses labels that are empty or too long.
            return NoAnswer(FailureKind.UNKNOWN_HOST, "the name cannot be looked up")
        case InvalidURL() | NonHttpUrlClientError() | ValueError():
            return NoAnswer(FailureKind.BAD_REQUEST, f"the request cannot be sent: {_first_line(str(error))}")
        case _:
            return NoAnswer(FailureKind.REFUSED, f"the connection broke before an answer: {_first_line(str(error))}")


def _unconnected(error: OSError) -> NoAnswer:
    match error:
        case ForbiddenAddress():
            return NoAnswer(
                FailureKind.FORBIDDEN_ADDRESS,
                f"{error}; where that is meant, write allow_private=True in the source, or name the host yourself",
            )
        case TimeoutError():
            return NoAnswer(FailureKind.TIMEOUT, "took too long to connect")
        case _:
            return NoAnswer(FailureKind.REFUSED, f"no connection: {error.strerror or error}")


def _certificate(error: ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    return cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else _first_line(str(cause))


def _tls(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return reason.replace("_", " ").lower() if reason else _first_line(str(error))


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip(" :")[:200]
