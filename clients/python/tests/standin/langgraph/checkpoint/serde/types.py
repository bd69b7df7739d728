"""Channels with a meaning of their own, and the snapshot of a delta channel."""

from typing import Any, NamedTuple

ERROR = "__error__"
SCHEDULED = "__scheduled__"
INTERRUPT = "__interrupt__"
RESUME = "__resume__"


class _DeltaSnapshot(NamedTuple):
    value: Any
