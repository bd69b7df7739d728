"""Errors of a server, by their code. docs/SERVER.md says what the codes mean."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Type


class StetError(Exception):
    """A call failed.

    ``code`` is the code of the Connect protocol, such as ``not_found``. ``error_class`` and
    ``reasons`` are what the server says about the error: reasons are stable names, such as
    ``conversation-not-found``, the most serious one first.
    """

    code = "unknown"

    def __init__(
        self,
        message: str,
        *,
        error_class: str = "",
        reasons: Sequence[str] = (),
        details: Optional[List[Any]] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_class = error_class
        self.reasons = list(reasons)
        self.details = details or []

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Canceled(StetError):
    code = "canceled"


class Unknown(StetError):
    """The outcome is not known: look before you repeat the call."""

    code = "unknown"


class InvalidArgument(StetError):
    code = "invalid_argument"


class DeadlineExceeded(StetError):
    """The answer did not come in time. A change may have been made."""

    code = "deadline_exceeded"


class NotFound(StetError):
    code = "not_found"


class AlreadyExists(StetError):
    code = "already_exists"


class PermissionDenied(StetError):
    code = "permission_denied"


class ResourceExhausted(StetError):
    code = "resource_exhausted"


class FailedPrecondition(StetError):
    code = "failed_precondition"


class Aborted(StetError):
    """Another writer was faster: read again, then repeat the call."""

    code = "aborted"


class OutOfRange(StetError):
    code = "out_of_range"


class Unimplemented(StetError):
    code = "unimplemented"


class Internal(StetError):
    code = "internal"


class Unavailable(StetError):
    """The server cannot be reached, or cannot answer now. A change may have been made."""

    code = "unavailable"


class DataLoss(StetError):
    code = "data_loss"


class Unauthenticated(StetError):
    code = "unauthenticated"


class BlobMismatch(StetError):
    """The server returned bytes that do not match their id."""

    code = "data_loss"


_BY_CODE: Dict[str, Type[StetError]] = {
    kind.code: kind
    for kind in (
        Canceled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists,
        PermissionDenied, ResourceExhausted, FailedPrecondition, Aborted, OutOfRange,
        Unimplemented, Internal, Unavailable, DataLoss, Unauthenticated,
    )
}  # fmt: skip

# What the status of an answer means that is not from stet itself, such as a proxy's.
_BY_STATUS = {
    400: "internal", 401: "unauthenticated", 403: "permission_denied", 404: "unimplemented",
    408: "deadline_exceeded", 413: "resource_exhausted", 429: "unavailable",
    502: "unavailable", 503: "unavailable", 504: "unavailable",
}  # fmt: skip


def from_answer(status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> StetError:
    """Returns the error that an answer means. The names of headers are in lower case."""
    code = body.get("code")
    kind = _BY_CODE.get(code if isinstance(code, str) else _BY_STATUS.get(status, "unknown"), Unknown)
    reasons = [r.strip() for r in headers.get("stet-error", "").split(",")]
    return kind(
        str(body.get("message") or f"the server answered with status {status}"),
        error_class=headers.get("stet-error-class", ""),
        reasons=[r for r in reasons if r],
        details=body.get("details"),
    )
