"""libpolyring.so by ctypes: where it is found, what polyring.h declares, and its failures as exceptions.

Calls release the interpreter's lock; functions that the library calls back take it again.
"""

import ctypes
import enum
import os
import pathlib
from typing import Any, Optional

VARIABLE = "POLYRING_LIBRARY"  # a path of libpolyring.so, in place of those that are looked for
NAME = "libpolyring.so.0"
INTERFACE = "0.1"  # of polyring.h
MAX_ID_BYTES = 128


class Result(enum.IntEnum):
    """What a call of the library returns; see polyring.h."""

    SUCCESS = 0
    INTERNAL = 1
    CUDA = 2
    NCCL = 3
    TIMEOUT = 4
    NOT_AVAILABLE = 5
    ARGUMENT = 6
    MISMATCH = 7
    CONNECTION = 10


class Error(RuntimeError):
    """A call failed. Its text is one sentence with the remedy; `code` is why. Unless `code` is ARGUMENT or MISMATCH, the
    communicator is broken: every later call fails as well, and it can only be closed."""

    def __init__(self, sentence: str, code: Result) -> None:
        super().__init__(sentence)
        self.code = code


class UsageError(Error, ValueError):
    """Nothing was done: an argument is impossible."""

    def __init__(self, sentence: str, code: Result = Result.ARGUMENT) -> None:
        super().__init__(sentence, code)


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("timeout", ctypes.c_double), ("transport", ctypes.c_int),
                ("interface_name", ctypes.c_char_p), ("algorithm", ctypes.c_char_p), ("check", ctypes.c_int),
                ("gpu", ctypes.c_int)]


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * MAX_ID_BYTES)]


ALLGATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
SET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t,
                       ctypes.POINTER(ctypes.c_size_t), ctypes.c_double)


class Group(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("allgather", ALLGATHER)]


class Store(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("prefix", ctypes.c_char_p), ("set", SET), ("get", GET)]


_HANDLE, _POINTER, _COUNT, _INT = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_NEW_HANDLE, _NEW_INT, _OPTIONS = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int), ctypes.POINTER(Options)

# The arguments of the functions that return a polyring_result.
_FUNCTIONS = {
    "get_unique_id": (ctypes.POINTER(UniqueId),),
    "unique_id_at": (ctypes.POINTER(UniqueId), ctypes.c_char_p, ctypes.c_char_p),
    "comm_create": (_NEW_HANDLE, ctypes.POINTER(UniqueId), _INT, _INT, _OPTIONS),
    "comm_create_from_group": (_NEW_HANDLE, ctypes.POINTER(Group), _INT, _INT, _OPTIONS),
    "comm_create_from_store": (_NEW_HANDLE, ctypes.POINTER(Store), _INT, _INT, _OPTIONS),
    "comm_abort": (_HANDLE,),
    "comm_free": (_HANDLE,),
    "comm_rank": (_HANDLE, _NEW_INT),
    "comm_size": (_HANDLE, _NEW_INT),
    "comm_hosts": (_HANDLE, _NEW_INT),
    "comm_transport": (_HANDLE, ctypes.POINTER(ctypes.c_char_p)),
    "comm_planning": (_HANDLE, ctypes.POINTER(ctypes.c_char_p)),
    "mem_alloc": (_HANDLE, ctypes.c_size_t, _NEW_HANDLE),
    "mem_free": (_HANDLE, _POINTER),
    "mem_register": (_HANDLE, _POINTER, _COUNT),
    "mem_deregister": (_HANDLE, _POINTER),
    "allreduce": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _INT),
    "reduce_scatter": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _INT),
    "allgather": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT),
    "broadcast": (_HANDLE, _POINTER, _COUNT, _INT, _INT),
    "barrier": (_HANDLE,),
    "start_allreduce": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _INT, _NEW_HANDLE),
    "start_reduce_scatter": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _INT, _NEW_HANDLE),
    "start_allgather": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _NEW_HANDLE),
    "start_broadcast": (_HANDLE, _POINTER, _COUNT, _INT, _INT, _NEW_HANDLE),
    "start_barrier": (_HANDLE, _NEW_HANDLE),
    "enqueue_allreduce": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _INT, _POINTER),
    "enqueue_reduce_scatter": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _INT, _POINTER),
    "enqueue_allgather": (_HANDLE, _POINTER, _POINTER, _COUNT, _INT, _POINTER),
    "enqueued_wait": (_HANDLE,),
    "stream_wait": (_HANDLE, _POINTER),
    "test": (_NEW_HANDLE, _NEW_INT),
    "wait": (_NEW_HANDLE,),
}


def _candidates() -> "list[str]":
    if named := os.environ.get(VARIABLE):
        return [named]
    beside = pathlib.Path(__file__).with_name(NAME)
    return [str(beside), NAME] if beside.exists() else [NAME]


def _open() -> ctypes.CDLL:
    """Throws an ImportError that says where it looked."""
    failures = []
    for candidate in _candidates():
        try:
            library = ctypes.CDLL(candidate)
        except OSError as error:
            failures.append(str(error))
            continue
        for name, arguments in _FUNCTIONS.items():
            function = getattr(library, f"polyring_{name}")
            function.argtypes, function.restype = arguments, ctypes.c_int
        library.polyring_version.restype = library.polyring_error_text.restype = ctypes.c_char_p
        version = library.polyring_version().decode()
        if not version.startswith(f"{INTERFACE}."):
            raise ImportError(f"{candidate} is version {version}, and this package is for {INTERFACE}; install both from one release")
        return library
    raise ImportError(f"the library of Polyring cannot be opened ({'; '.join(failures)}); install it, or name libpolyring.so in {VARIABLE}")


library = _open()


def version() -> str:
    """Of the library, such as "0.1.0"."""
    text: bytes = library.polyring_version()
    return text.decode()


def error_of(result: int) -> Error:
    """Of this thread's last call, which returned that."""
    sentence = library.polyring_error_text().decode(errors="replace")
    code = Result(result)
    return UsageError(sentence) if code == Result.ARGUMENT else Error(sentence, code)


def call(name: str, *arguments: Any, cause: Optional[BaseException] = None) -> None:
    """Of polyring_NAME(). Throws what has failed; `cause` is an exception of a function that was called back."""
    result = getattr(library, f"polyring_{name}")(*arguments)
    if result != Result.SUCCESS:
        raise error_of(result) from cause
