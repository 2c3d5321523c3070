# SPDX-License-Identifier: MIT
"""Which slot a person is in and whose it is, as sandbox/protocol/node_table.h
says it."""

KEY = b"inline-slot-hash"
SLOTS = 1024
MASK = (1 << 64) - 1


def rotate(x, bits):
    return (x << bits | x >> 64 - bits) & MASK


def siphash(message, key=KEY):
    """SipHash-2-4."""
    k = [int.from_bytes(key[i:i + 8], "little") for i in (0, 8)]
    v = [k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
         k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            v[0] = v[0] + v[1] & MASK
            v[2] = v[2] + v[3] & MASK
            v[1] = rotate(v[1], 13) ^ v[0]
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2] = v[2] + v[1] & MASK
            v[0] = v[0] + v[3] & MASK
            v[1] = rotate(v[1], 17) ^ v[2]
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes(
        [len(message) & 0xff])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i:i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def slot_of(user):
    """The slot of a person."""
    return siphash(int(user).to_bytes(8, "little")) % SLOTS


def slot_of_row(row):
    """The slot that an id of a job or a view says."""
    return row >> 12 & SLOTS - 1


def settled_owner(slot, names):
    """The node of a slot without a line, of nodes that are not joining."""
    return max(names, key=lambda name: siphash(slot.to_bytes(2, "little")
                                               + name.encode()))
