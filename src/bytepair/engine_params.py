"""params.yaml, where shards run: read by stages, and a dependency of none."""

from __future__ import annotations

import re
from pathlib import Path

from bytepair.blocks import Block
from bytepair.engine import ENGINES, MEMORY, EngineParams
from bytepair.files import StrPath
from bytepair.yaml_strict import load_yaml

_ADDRESS = re.compile(
    r"(?:(?:tcp|tls|ws|wss|ucx)://)?(?:\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+):[0-9]{1,5}"
)
_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
LEAST_MEMORY = 128_000_000  # Python and its libraries have about half of it


def load_engine(path: StrPath) -> EngineParams:
    """The block `engine`, or worker processes, one a core, if there is none.

    Raises:
        ParamsError: the file, the key, its value, and what to write instead.
    """
    top = Block(path, "", load_yaml(path))
    if "engine" not in top.values:
        return EngineParams()
    block = top.block("engine", "name", "workers", "memory", "address", "store")
    name = block.choice("name", ENGINES, default="processes")
    workers = block.optional_integer("workers", minimum=1)
    address = block.optional_string("address")
    if address is not None and name != "dask":
        block.refuse(
            "address", f"goes with `name: dask`, not with {name}. Write that, or delete it."
        )
    if address is not None and not _ADDRESS.fullmatch(address):
        block.refuse("address", f"expected tcp://HOST:PORT of a Dask scheduler, got {address!r}.")
    store = block.optional_string("store")
    if store is not None:
        store = _checked_store(block, store, Path(path).parent)
    if address is not None and workers is not None:
        block.refuse("workers", "the cluster at engine.address has workers already. Delete it.")
    memory = block.size("memory", default=MEMORY)
    if memory < LEAST_MEMORY:
        block.refuse(
            "memory", f"a worker needs {LEAST_MEMORY // 1_000_000}MB, got {memory:,} bytes."
        )
    return EngineParams(
        name=name,
        workers=workers,
        memory=memory,
        address=address,
        store=store,
    )


def _checked_store(block: Block, store: str, root: Path) -> str:
    """A URL as it is, a path in full: workers of a cluster may be in another folder."""
    if store.startswith("~"):
        block.refuse("store", f"~ is not expanded. Write the whole path instead of {store!r}.")
    scheme, is_url, rest = store.partition("://")
    if _ONE_SLASH.match(store) or (is_url and not rest.strip("/")):
        block.refuse("store", f"expected a path or a URL such as s3://bucket/web, got {store!r}.")
    if scheme == "memory" and is_url:
        block.refuse("store", "no other process sees what is in memory. Write a folder.")
    if is_url and scheme != "file":
        return store
    return str((root / (rest or store)).resolve())
