"""params.yaml, where shards run: read by stages, and a dependency of none."""

from __future__ import annotations

import re

from bytepair.blocks import Block
from bytepair.engine import ENGINES, MEMORY, EngineParams
from bytepair.files import StrPath
from bytepair.yaml_strict import load_yaml

_ADDRESS = re.compile(
    r"(?:(?:tcp|tls|ws|wss|ucx)://)?(?:\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+):[0-9]{1,5}"
)
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
    if store is not None and store.startswith("~"):
        block.refuse("store", f"~ is not expanded. Write the whole path instead of {store!r}.")
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
