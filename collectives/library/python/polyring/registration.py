"""Registration: of an array that belongs to the program, and that the ranks of a host reach directly."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Type as TypeOf

if TYPE_CHECKING:
    from .communicator import Communicator

Array = Any  # a numpy.ndarray


class Registration:
    """Of an array, whose memory the ranks of a host reach directly until deregister(), or the end of its `with` block."""

    def __init__(self, communicator: "Communicator", array: Array) -> None:
        self._communicator = communicator
        self._array = array
        self._address = array.ctypes.data

    @property
    def array(self) -> Array:
        return self._array

    def deregister(self) -> None:
        """The array keeps its contents, in memory of this process alone. Nothing the second time, or after close() of the
        communicator, which does the same. No operation uses the array, and no other thread, until it returns."""
        self._communicator._deregister(self)

    def __enter__(self) -> Array:
        return self._array

    def __exit__(self, kind: Optional[TypeOf[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.deregister()
