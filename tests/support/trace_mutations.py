"""Small damage to a file, drawn from a seeded stream: the fuzzer's alphabet."""

import gzip
import re

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
WORD = re.compile(rb'"[a-z_A-Z ]+"|[A-Za-z_]{3,}')
NASTY = (
    b"NaN", b"Infinity", b"-Infinity", b"nan", b"1e999", b"-1", b"0", b"", b"null", b"true", b"[]", b"{}", b'""',
    b'"x"', b"9223372036854775808", b"9223372036854775807", b"-9223372036854775809", b"2147483649", b"1" * 400,
    b"0.1", b"1e-400", b"1e18", b"0x10", b" 7", b"7 ", b"1_000", "\u0663".encode(), b"\xff\xfe", b"\x00", b'"', b",",
    b"\n", b"[1, 2]", b'{"a": [1]}', b"2024-02-30 00:00:00", b"1677-01-01 00:00:00", b"2262-12-31 00:00:00+14:00",
    b"\\ud800", b'"\\ud800"', b"4611686018.427387904", b"4611686018427387905", b"[" * 3000, b"1.5",
)  # fmt: skip


def mutate(content, random):
    """The content with one or two kinds of damage, sometimes compressed and then damaged."""
    for _ in range(random.integers(1, 3)):
        content = KINDS[random.integers(len(KINDS))](content, random)
    if random.random() < 0.05:
        content = gzip.compress(content, 1)
        if random.random() < 0.5:
            content = flip(content, random)
    return content


def flip(content, random):
    if not content:
        return content
    place = random.integers(len(content))
    return content[:place] + bytes([random.integers(256)]) + content[place + 1 :]


def cut(content, random):
    return content[: random.integers(len(content) + 1)]


def remove(content, random):
    start = random.integers(len(content) + 1)
    return content[:start] + content[start + random.integers(1, 20) :]


def repeat(content, random):
    start = random.integers(len(content) + 1)
    part = content[start : start + random.integers(1, 200)]
    return content[:start] + part * int(random.integers(1, 4)) + content[start:]


def number(content, random):
    """A number, or a text, becomes something nasty."""
    found = list(NUMBER.finditer(content)) or list(WORD.finditer(content))
    if not found:
        return content
    match = found[random.integers(len(found))]
    return content[: match.start()] + NASTY[random.integers(len(NASTY))] + content[match.end() :]


def word(content, random):
    """A name or a text becomes another one of the file, or something nasty."""
    found = list(WORD.finditer(content))
    if not found:
        return content
    match, other = (found[random.integers(len(found))] for _ in range(2))
    new = other.group() if random.random() < 0.5 else NASTY[random.integers(len(NASTY))]
    return content[: match.start()] + new + content[match.end() :]


def lines(content, random):
    """Lines are shuffled, doubled or left out."""
    found = content.split(b"\n")
    drawn = random.integers(0, len(found), random.integers(1, len(found) + 3))
    return b"\n".join(found[place] for place in drawn)


KINDS = (flip, cut, remove, repeat, number, number, number, word, word, lines)
