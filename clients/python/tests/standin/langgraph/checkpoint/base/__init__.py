"""What a saver is built on, by the documented names and signatures."""

import pickle
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, SCHEDULED

Checkpoint = Dict[str, Any]
CheckpointMetadata = Dict[str, Any]
ChannelVersions = Dict[str, Union[str, int, float]]

# Writes to these channels replace earlier ones of their task.
WRITES_IDX_MAP = {ERROR: -1, SCHEDULED: -2, INTERRUPT: -3, RESUME: -4}

EXCLUDED_METADATA_KEYS = {
    "thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "langgraph_step", "langgraph_node",
    "langgraph_triggers", "langgraph_path", "langgraph_checkpoint_ns",
}  # fmt: skip


class CheckpointTuple(NamedTuple):
    config: Dict[str, Any]
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_config: Optional[Dict[str, Any]] = None
    pending_writes: Optional[List[Tuple[str, str, Any]]] = None


class _Serializer:
    """The package uses msgpack; the tests need only that values come back."""

    def dumps_typed(self, value: Any) -> Tuple[str, bytes]:
        return "pickle", pickle.dumps(value)

    def loads_typed(self, data: Tuple[str, bytes]) -> Any:
        if data[0] != "pickle":
            raise NotImplementedError(f"unknown serialisation {data[0]}")
        return pickle.loads(data[1])


class BaseCheckpointSaver:
    serde: Any = _Serializer()

    def __init__(self, *, serde: Any = None) -> None:
        self.serde = serde or self.serde

    def get(self, config: Dict[str, Any]) -> Optional[Checkpoint]:
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    async def aget(self, config: Dict[str, Any]) -> Optional[Checkpoint]:
        found = await self.aget_tuple(config)
        return found.checkpoint if found else None


def _missing(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(name)

    return method


for _name in (
    "get_tuple", "list", "put", "put_writes", "delete_thread", "delete_for_runs", "copy_thread", "prune",
    "get_delta_channel_history",
):  # fmt: skip
    setattr(BaseCheckpointSaver, _name, _missing(_name))
    setattr(BaseCheckpointSaver, "a" + _name, _missing("a" + _name))


def get_checkpoint_id(config: Dict[str, Any]) -> Optional[str]:
    return config["configurable"].get("checkpoint_id")


def get_checkpoint_metadata(config: Dict[str, Any], metadata: CheckpointMetadata) -> CheckpointMetadata:
    """Adds plain values of the config to the metadata of a checkpoint."""
    merged = dict(metadata)
    for more in (config.get("metadata"), config.get("configurable")):
        for key, value in (more or {}).items():
            hidden = key in EXCLUDED_METADATA_KEYS or key.startswith("__")
            if key not in merged and not hidden and isinstance(value, (str, int, float)):
                merged[key] = value
    return {k: v.replace("\x00", "") if isinstance(v, str) else v for k, v in merged.items()}
