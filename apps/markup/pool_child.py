"""The child side of the parser pool: reads batches, answers file by file, dies rather than outgrow its limits.

Frames on both pipes are a length (8 bytes, big endian) and a pickle. The parent is the only writer of what is read
here, and the results that go back are read by the process that sent the work.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import gc
import importlib
import io
import operator
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, BinaryIO

LENGTH = struct.Struct(">Q")
GRACE_SECONDS = 5.0
"""A file over its time is killed by the parent; this much later the child ends by itself if the parent is gone."""


@cache
def _maker(cls: Any) -> Callable[..., Any]:
    """The quick constructor of a frozen dataclass.

    A frozen dataclass sets each field through ``object.__setattr__``, which costs four times as much as its own slots
    do. So a plain twin with the same slots is filled, which then becomes the frozen class.
    """
    names = [each.name for each in dataclasses.fields(cls)]
    body = "\n    ".join([*(f"self.{name} = {name}" for name in names), "self.__class__ = cls"])
    # The dataclass module writes its constructors the same way; no text from outside gets in here.
    scope: dict[str, Any] = {"cls": cls}
    exec(f"def __init__({', '.join(['self', *names])}):\n    {body}\n", scope)  # noqa: S102
    return type(f"{cls.__name__}Draft", (), {"__slots__": tuple(names), "__init__": scope["__init__"]})


def _build(cls: Any, values: tuple[Any, ...], kinds: tuple[tuple[int, Any], ...]) -> Any:
    filled = list(values)
    for number, kind in kinds:
        filled[number] = tuple(map(partial(tuple.__new__, kind), values[number]))
    return _maker(cls)(*filled)


def _packed(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[tuple[int, Any], ...]]:
    """The values with plain tuples for the named ones that fill a field, and for such fields number and class."""
    packed = list(values)
    kinds: list[tuple[int, Any]] = []
    for number, value in enumerate(values):
        if type(value) is tuple and len(found := set(map(type, value))) == 1:
            kind = found.pop()
            if kind is not tuple and issubclass(kind, tuple):
                packed[number] = tuple(map(tuple, value))
                kinds.append((number, kind))
    return tuple(packed), tuple(kinds)


@cache
def _reader(cls: Any) -> Callable[[Any], Any] | None:
    """What reads all fields of a dataclass at once, None for other classes."""
    if not dataclasses.is_dataclass(cls):
        return None
    names = tuple(cls.__dataclass_fields__)
    if len(names) == 1:
        return lambda value: (getattr(value, names[0]),)
    return operator.attrgetter(*names) if names else lambda _: ()


class _Pickler(pickle.Pickler):
    """Sends frozen slotted dataclasses and named tuples as their class and values.

    The standard way costs a Python call a field of the former, and one at both ends for each of the latter. A field of
    many named tuples goes as plain ones, of which Python code sees none.
    """

    def reducer_override(self, value: Any) -> Any:
        cls = type(value)
        if issubclass(cls, tuple):  # plain ones do not come here
            return tuple.__new__, (cls, tuple(value))
        read = _reader(cls)  # type: ignore[arg-type]
        return NotImplemented if read is None else (_build, (cls, *_packed(read(value))))


def dump(value: object) -> bytes:
    """Pickle a value for the other side."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table
    pickler.dump(value)
    return buffer.getvalue()


@cache
def resolve(name: str) -> Callable[..., object]:
    """The function that ``package.module:function`` names."""
    module, _, attribute = name.partition(":")
    found: Callable[..., object] = getattr(importlib.import_module(module), attribute)
    return found


def _limit_memory(megabytes: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system can limit the address space
        import resource

        size = megabytes * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _address_space() -> int:
    """Bytes of address space in use, 0 where the system does not tell."""
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _send(pipe: BinaryIO, value: object) -> None:
    frame = dump(value)
    pipe.write(LENGTH.pack(len(frame)))
    pipe.write(frame)
    pipe.flush()


def _answer(function: Callable[..., object], arguments: tuple[object, ...]) -> tuple[str, object]:
    try:
        return "value", function(*arguments)
    except MemoryError:
        return "memory", None
    except RecursionError:
        return "nesting", None
    except Exception as error:  # one file's fault is that file's answer, never the batch's end
        return "failure", f"{type(error).__name__}: {error}"


def serve(function: str, parse_seconds: float, parse_memory_mb: int) -> None:
    """Answer batches until the parent closes the pipe."""
    reading = os.fdopen(os.dup(0), "rb")
    writing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not end up between two frames
    call = resolve(function)
    # Parsing makes a hundred thousand objects and no cycles: looking for some costs it 15 % of its time.
    gc.collect()
    gc.freeze()
    gc.disable()
    _limit_memory(parse_memory_mb)
    _send(writing, ("ready", None))
    while head := reading.read(LENGTH.size):
        batch = pickle.loads(reading.read(LENGTH.unpack(head)[0]))  # noqa: S301 the parent's own pickle
        for arguments in batch:
            # SIGALRM without handler ends the process: also in native code, also when the parent was killed.
            signal.setitimer(signal.ITIMER_REAL, parse_seconds + GRACE_SECONDS)
            answer = _answer(call, arguments)
            signal.setitimer(signal.ITIMER_REAL, 0)
            try:
                _send(writing, answer)
            except MemoryError:
                _send(writing, ("memory", None))
            del answer
        gc.collect()
        # Beyond half of the limit the next file would be judged by what the ones before it left behind.
        _send(writing, ("end", _address_space() > parse_memory_mb * 1024 * 1024 // 2))


def main(arguments: list[str]) -> None:
    """Entry point of the child process."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve(arguments[0], float(arguments[1]), int(arguments[2]))


if __name__ == "__main__":
    main(sys.argv[1:])
