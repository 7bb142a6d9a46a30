"""Split a device's I/O in the kernel with a built-in eBPF program: no compiler, no package, some 80 ns per request.

Linux: bpf(2), perf_event_open(2); needs CAP_BPF and CAP_PERFMON. Only counts; does not store any written data.
"""

import ctypes
import os
import platform
import re
import struct
from collections.abc import Callable
from pathlib import Path

from fslab.system.syscalls import checked
from fslab.tracing import Split, Traffic

_NUMBERS = {"x86_64": (321, 298), "aarch64": (280, 241), "riscv64": (280, 241)}  # bpf, perf_event_open
_MAP_CREATE, _MAP_LOOKUP, _PROG_LOAD = 0, 1, 5
_ARRAY, _TRACEPOINT = 2, 5
_IOC_ENABLE, _IOC_SET_BPF = 0x2400, 0x40042408
_SLOTS = 16
_OPERATIONS = "RWDF"
_libc = ctypes.CDLL(None, use_errno=True)

# include/uapi/linux/bpf.h: LDX by size, ALU64, JMP
_LDXB, _LDXW, _STXW, _ATOMIC_ADD, _LDDW = 0x71, 0x61, 0x63, 0xDB, 0x18
_MOVK, _MOV, _ADD, _ADDK, _SHLK = 0xB7, 0xBF, 0x0F, 0x07, 0x67
_JA, _JEQK, _JNEK, _CALL, _EXIT = 0x05, 0x15, 0x55, 0x85, 0x95
_LOOKUP = 1


class DeviceSplit:
    """Counts from construction to :meth:`close`. OSError if the kernel or the privileges do not allow it."""

    def __init__(self, tracefs: Path, device: int) -> None:
        """``device`` is numbered as in tracepoints: major << 20 | minor."""
        event, fields = _event(tracefs / "events/block/block_rq_complete/format")
        self._open: list[int] = []
        try:
            self._map = self._kept(_bpf(_MAP_CREATE, struct.pack("<IIII", _ARRAY, 4, 8, _SLOTS)))
            program = self._kept(_load(_program(self._map, device, fields)))
            attributes = struct.pack("<IIQQQQ", 2, 128, event, 1, 0, 0).ljust(128, b"\0")  # a tracepoint
            counter = checked(_libc.syscall(_numbers()[1], attributes, -1, 0, -1, 8))
            self._kept(counter)
            for request, argument in ((_IOC_SET_BPF, program), (_IOC_ENABLE, 0)):
                checked(_libc.ioctl(counter, ctypes.c_ulong(request), argument))
        except OSError:
            self.close()
            raise

    def read(self) -> Split:
        found = {}
        for index, operation in enumerate(_OPERATIONS):
            for meta in (0, 1):
                slot = 4 * index + 2 * meta
                traffic = Traffic(bytes=self._slot(slot) * 512, requests=self._slot(slot + 1))
                if traffic.requests:
                    found[operation + "M" * meta] = traffic
        return found

    def close(self) -> None:
        """Stop counting. Can be called twice."""
        while self._open:
            os.close(self._open.pop())

    def _kept(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor

    def _slot(self, number: int) -> int:
        key, value = ctypes.c_uint32(number), ctypes.c_uint64()
        request = struct.pack("<IIQQQ", self._map, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
        _bpf(_MAP_LOOKUP, request)
        return value.value


def _numbers() -> tuple[int, int]:
    found = _NUMBERS.get(platform.machine())
    if found is None:
        raise OSError(f"not supported on {platform.machine()}")
    return found


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes, 128)
    return checked(_libc.syscall(_numbers()[0], command, buffer, 128))


def _event(file: Path) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return the tracepoint's number, and (offset, size) of its fields."""
    text = file.read_text()
    number = re.search(r"^ID: (\d+)", text, re.MULTILINE)
    lines = re.finditer(r"field:.*?(\w+)(?:\[\d*\])?;\s*offset:(\d+);\s*size:(\d+)", text)
    fields = {line[1]: (int(line[2]), int(line[3])) for line in lines}
    if number is None or not {"dev", "nr_sector", "rwbs"} <= set(fields):
        raise OSError(f"unexpected format of {file}: fslab does not support this kernel's tracepoint")
    return int(number[1]), fields


def _load(program: bytes) -> int:
    code, licence = ctypes.create_string_buffer(program, len(program)), ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(1 << 16)
    addresses = (ctypes.addressof(code), ctypes.addressof(licence))
    head = struct.pack("<IIQQ", _TRACEPOINT, len(program) // 8, *addresses)
    return _bpf(_PROG_LOAD, head + struct.pack("<IIQI", 1, len(log), ctypes.addressof(log), 0))


class _Code:
    """Instructions of a program, of eight bytes each."""

    def __init__(self) -> None:
        self.instructions: list[bytes] = []

    def add(self, op: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> None:
        self.instructions.append(struct.pack("<BBhi", op, dst | src << 4, off, imm))

    def jump(self) -> Callable[[], None]:
        """Add a jump, and return a function that sets its target to the position where it is called."""
        at = len(self.instructions)
        self.instructions.append(b"")

        def land() -> None:
            self.instructions[at] = struct.pack("<BBhi", _JA, 0, len(self.instructions) - at - 1, 0)

        return land


def _program(map_descriptor: int, device: int, fields: dict[str, tuple[int, int]]) -> bytes:
    """Return the program. For each request of ``device``: map[4·operation + 2·meta] += sectors, next slot += 1."""
    code = _Code()
    letters, length = fields["rwbs"]
    code.add(_MOV, 6, 1)  # r6: the event
    code.add(_LDXW, 0, 6, fields["dev"][0])
    code.add(_JEQK, 0, 0, 1, device)
    other_device = code.jump()
    _choose_operation(code, letters)
    _choose_metadata(code, letters, length)
    code.add(_ADD, 7, 8)
    code.add(_LDXW, 9, 6, fields["nr_sector"][0])
    for _ in range(2):  # the sectors, then 1
        code.add(_STXW, 10, 7, -4)
        # one instruction of two words
        code.instructions += [struct.pack("<BBhi", _LDDW, 1 | 1 << 4, 0, map_descriptor), bytes(8)]
        code.add(_MOV, 2, 10)
        code.add(_ADDK, 2, imm=-4)
        code.add(_CALL, imm=_LOOKUP)
        code.add(_JEQK, 0, 0, 1, 0)
        code.add(_ATOMIC_ADD, 0, 9)
        code.add(_ADDK, 7, imm=1)
        code.add(_MOVK, 9, imm=1)
    other_device()
    code.add(_MOVK, 0)
    code.add(_EXIT)
    return b"".join(code.instructions)


def _choose_operation(code: _Code, letters: int) -> None:
    """Set r7 to the first slot of the operation: the first letter, or the one after the F of a flush."""
    code.add(_MOVK, 7, imm=4 * _OPERATIONS.index("F"))
    ends = []
    for position in (0, 1):
        code.add(_LDXB, 0, 6, letters + position)
        for operation in "RWD":
            code.add(_JNEK, 0, 0, 2, ord(operation))
            code.add(_MOVK, 7, imm=4 * _OPERATIONS.index(operation))
            ends.append(code.jump())
    for land in ends:
        land()


def _choose_metadata(code: _Code, letters: int, length: int) -> None:
    """Set r8 to 2 if a letter is M, otherwise to 0. Behind the final NUL are letters of earlier events."""
    code.add(_MOVK, 8)
    ends = []
    for position in range(length):
        code.add(_LDXB, 0, 6, letters + position)
        code.add(_JNEK, 0, 0, 1, 0)
        ends.append(code.jump())
        code.add(_JNEK, 0, 0, 1, ord("M"))
        code.add(_MOVK, 8, imm=2)
    for land in ends:
        land()
