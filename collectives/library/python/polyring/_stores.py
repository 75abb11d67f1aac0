"""How often each key-value store has made a communicator."""

import threading
import weakref
from typing import Any, Dict, Tuple


class Stores:
    """How many communicators this process has made of each store."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collection of garbage forgets stores at any time
        self._made: "Dict[int, Tuple[Any, Dict[Tuple[str, int], int]]]" = {}  # by the store's id(), with what keeps or watches it

    def numbered(self, store: Any, prefix: str, rank: int) -> str:
        """The prefix itself of the first communicator, that of a later one with its number."""
        key = id(store)
        with self._lock:
            if key not in self._made:
                self._made[key] = (self._watched(store, key), {})
            counts = self._made[key][1]
            number = counts[prefix, rank] = counts.get((prefix, rank), 0) + 1
        return prefix if number == 1 else f"{prefix}#{number}"

    def _watched(self, store: Any, key: int) -> Any:
        try:
            return weakref.ref(store, lambda _: self._forget(key))
        except TypeError:  # it stays, so that no other has its id()
            return store

    def _forget(self, key: int) -> None:
        with self._lock:
            self._made.pop(key, None)


stores = Stores()
