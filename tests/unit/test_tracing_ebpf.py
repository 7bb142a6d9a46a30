"""Tests of the eBPF program on events of any content, by an interpreter of the instructions that it consists of."""

from __future__ import annotations

import struct

import pytest

from fslab.tracing.ebpf import _program

DEVICE = 7 << 20 | 3
FIELDS = {"dev": (8, 4), "nr_sector": (24, 4), "rwbs": (34, 10)}
MASK = (1 << 64) - 1


def event(letters: bytes, device: int = DEVICE, sectors: int = 8) -> bytes:
    found = bytearray(64)
    struct.pack_into("<I", found, 8, device)
    struct.pack_into("<I", found, 24, sectors)
    found[34 : 34 + len(letters)] = letters
    return bytes(found)


def counted(given: bytes) -> dict[int, int]:  # noqa: C901 - one case for each instruction
    """Run the program on an event, and return the slots of its map that it changed."""
    text = _program(42, DEVICE, FIELDS)
    code = [struct.unpack("<BBhi", text[at : at + 8]) for at in range(0, len(text), 8)]
    registers, slots, stored, at = [0] * 11, dict[int, int](), 0, 0
    while True:
        op, both, offset, constant = code[at]
        dst, src = both & 15, both >> 4
        at += 1
        match op:
            case 0x71 | 0x61:
                registers[dst] = int.from_bytes(given[offset : offset + (1 if op == 0x71 else 4)], "little")
            case 0x63:
                stored = registers[src]
            case 0xDB:
                slots[stored] = slots.get(stored, 0) + registers[src]
            case 0x18:
                assert (constant, src) == (42, 1), "the map"
                at += 1
            case 0xB7:
                registers[dst] = constant
            case 0xBF:
                registers[dst] = registers[src]
            case 0x0F:
                registers[dst] = registers[dst] + registers[src] & MASK
            case 0x07:
                registers[dst] = registers[dst] + constant & MASK
            case 0x05:
                at += offset
            case 0x15:
                at += offset if registers[dst] == constant else 0
            case 0x55:
                at += offset if registers[dst] != constant else 0
            case 0x85:
                registers[0] = 1  # the slot exists
            case 0x95:
                return slots
            case _:
                raise AssertionError(f"unknown instruction {op:#x}")


READ, READ_META, WRITE, WRITE_META, DISCARD, FLUSH = 0, 2, 4, 6, 8, 12


@pytest.mark.parametrize(
    ("letters", "slot"),
    [
        (b"R", READ), (b"RA", READ), (b"RM", READ_META), (b"WS", WRITE), (b"WSM", WRITE_META),
        (b"FWFSM", WRITE_META), (b"FWS", WRITE), (b"DS", DISCARD), (b"FF", FLUSH), (b"N", FLUSH),
        # The kernel reuses the buffer: behind the final NUL lie the letters of an earlier event.
        (b"WS\0SM", WRITE), (b"W\0FSM", WRITE), (b"R\0M", READ), (b"RM\0SM", READ_META),
    ],
)  # fmt: skip
def test_the_letters_of_a_request_up_to_the_nul_say_where_it_counts(letters: bytes, slot: int) -> None:
    assert counted(event(letters)) == {slot: 8, slot + 1: 1}


def test_requests_of_another_device_do_not_count() -> None:
    assert counted(event(b"WS", device=DEVICE + 1)) == {}
