"""Messages of random lengths, and their digests as Python's own modules compute them.

reference.py FOLDER ALGORITHM...: lays folders of 1 to 40 files into FOLDER, the same for all
algorithms, and prints a line `ALGORITHM FOLDER/FILE HEX` for each file and algorithm; or
`ALGORITHM not run: REASON`.
"""

import hashlib
import os
import random
import sys
import zlib

# Numbers of messages around the lanes of kernels, and the largest.
COUNTS = [1, 2, 3, 5, 8, 9, 40]


def module(name):
    try:
        return __import__(name)
    except ImportError:
        return None


def bitwise(polynomial, reflected, start, data):
    """CRC of 32 bits by a table of bytes."""
    table = []
    for byte in range(256):
        rest = byte if reflected else byte << 24
        for _ in range(8):
            if reflected:
                rest = rest >> 1 ^ (polynomial if rest & 1 else 0)
            else:
                rest = rest << 1 ^ (polynomial if rest >> 31 else 0)
            rest &= 0xFFFFFFFF
        table.append(rest)
    crc = start
    for byte in data:
        if reflected:
            crc = crc >> 8 ^ table[crc & 255 ^ byte]
        else:
            crc = crc << 8 & 0xFFFFFFFF ^ table[crc >> 24 ^ byte]
    return crc


def crc(data):
    length, tail = len(data), b""
    while length:
        tail += bytes([length & 255])
        length >>= 8
    return ~bitwise(0x04C11DB7, False, 0, data + tail) & 0xFFFFFFFF


def bsd(data):
    total = 0
    for byte in data:
        total = (total >> 1 | (total & 1) << 15) + byte & 0xFFFF
    return total


def sysv(data):
    total = sum(data) & 0xFFFFFFFF
    total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) + (total >> 16) & 0xFFFF


def functions():
    """The function of each algorithm, by its name here; None without its module."""
    xxhash, blake3 = module("xxhash"), module("blake3")
    named = {
        "md5": "md5",
        "sha1": "sha1",
        "sha224": "sha224",
        "sha256": "sha256",
        "sha384": "sha384",
        "sha512": "sha512",
        "sha512-256": "sha512_256",
        "sha3-224": "sha3_224",
        "sha3-256": "sha3_256",
        "sha3-384": "sha3_384",
        "sha3-512": "sha3_512",
        "sm3": "sm3",
        "blake2b": "blake2b",
    }
    all = {
        ours: (lambda theirs: lambda data: hashlib.new(theirs, data).hexdigest())(theirs)
        if theirs in hashlib.algorithms_available
        else None
        for ours, theirs in named.items()
    }
    all |= {
        "blake2b-256": lambda data: hashlib.blake2b(data, digest_size=32).hexdigest(),
        "crc32b": lambda data: "%08x" % zlib.crc32(data),
        "crc32c": lambda data: "%08x"
        % (~bitwise(0x82F63B78, True, 0xFFFFFFFF, data) & 0xFFFFFFFF),
        "crc": lambda data: "%08x" % crc(data),
        "bsd": lambda data: "%04x" % bsd(data),
        "sysv": lambda data: "%04x" % sysv(data),
        "blake3": blake3 and (lambda data: blake3.blake3(data).hexdigest()),
    }
    for ours, theirs in {"xxh32": "xxh32", "xxh64": "xxh64", "xxh3": "xxh3_64", "xxh128": "xxh3_128"}.items():
        all[ours] = xxhash and (lambda f: lambda data: f(data).hexdigest())(
            getattr(xxhash, theirs)
        )
    return all


def main():
    folder, algorithms = sys.argv[1], sys.argv[2:]
    choose = random.Random(20261127)
    messages = {}
    for round, count in enumerate(COUNTS + [choose.randint(1, 40) for _ in range(3)]):
        os.mkdir(f"{folder}/{round}")
        for number in range(count):
            most = choose.choice([70, 300, 300, 1100, 5000, 40000])
            data = choose.randbytes(choose.randint(0, most))
            name = f"{round}/{number}"
            messages[name] = data
            with open(f"{folder}/{name}", "wb") as file:
                file.write(data)
    known = functions()
    for algorithm in algorithms:
        function = known.get(algorithm)
        if not function:
            print(algorithm, "not run: this Python has no module for it")
            continue
        for name, data in messages.items():
            print(algorithm, name, function(data))


main()
