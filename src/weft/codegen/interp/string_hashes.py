"""Hashes of strings for interpreted programs, as `native/hostops/hashes.c` has them."""

from __future__ import annotations

from typing import Final

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_ALL: Final = (1 << 64) - 1
_SIP: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def fingerprint(s: bytes) -> int:
    """Returns the fingerprint of FarmHash of 64 bits."""
    n = len(s)
    if n <= 16:
        return _of_short(s, n)
    return _of_middle(s, n) if n <= 64 else _of_long(s, n)


def siphash(s: bytes, first: int, second: int) -> int:
    """Returns SipHash-2-4 by a key of two halves."""
    v = [(k ^ c) & _ALL for k, c in zip((first, second, first, second), _SIP, strict=True)]
    padded = s + bytes(7 - len(s) % 8) + bytes([len(s) % 256])
    for at in range(0, len(padded), 8):
        m = _word(padded, at)
        v[3] ^= m
        v = _sip_round(_sip_round(v))
        v[0] ^= m
    v[2] ^= 0xFF
    for _ in range(4):
        v = _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _sip_round(v: list[int]) -> list[int]:
    a, b, c, d = v
    a = (a + b) & _ALL
    b, a = _turned(b, 51) ^ a, _turned(a, 32)
    c = (c + d) & _ALL
    d = _turned(d, 48) ^ c
    a = (a + d) & _ALL
    d = _turned(d, 43) ^ a
    c = (c + b) & _ALL
    return [a, _turned(b, 47) ^ c, _turned(c, 32), d]


def _word(s: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(s[at : at + size], "little")


def _turned(x: int, by: int) -> int:
    x &= _ALL
    return (x >> by | x << (64 - by)) & _ALL


def _mixed(x: int) -> int:
    x &= _ALL
    return x ^ x >> 47


def _joined(u: int, v: int, by: int) -> int:
    a = _mixed((u ^ v) * by)
    return (_mixed((v ^ a) * by) * by) & _ALL


def _of_short(s: bytes, n: int) -> int:
    by = _K2 + 2 * n
    if n >= 8:
        a, b = _word(s, 0) + _K2, _word(s, n - 8)
        return _joined((_turned(b, 37) * by + a) & _ALL, ((_turned(a, 25) + b) * by) & _ALL, by)
    if n >= 4:
        return _joined(n + (_word(s, 0, 4) << 3), _word(s, n - 4, 4), by)
    if n == 0:
        return _K2
    return (_mixed((s[0] + (s[n >> 1] << 8)) * _K2 ^ (n + (s[n - 1] << 2)) * _K0) * _K2) & _ALL


def _of_middle(s: bytes, n: int) -> int:
    by = _K2 + 2 * n
    a, b = _word(s, 0) * (_K1 if n <= 32 else _K2), _word(s, 8)
    c, d = _word(s, n - 8) * by, _word(s, n - 16) * _K2
    y = (_turned(a + b, 43) + _turned(c, 30) + d) & _ALL
    z = _joined(y, (a + _turned(b + _K2, 18) + c) & _ALL, by)
    if n <= 32:
        return z
    e, f = _word(s, 16) * by, _word(s, 24)
    g, h = (y + _word(s, n - 32)) * by, (z + _word(s, n - 24)) * by
    return _joined((_turned(e + f, 43) + _turned(g, 30) + h) & _ALL, (e + _turned(f + a, 18) + g) & _ALL, by)


def _of_long(s: bytes, n: int) -> int:
    x, y = 81 * _K2 + _word(s, 0), 81 * _K1 + 113
    z = _mixed(y * _K2 + 113) * _K2
    v, w = (0, 0), (0, 0)
    places = [*range(0, (n - 1) // 64 * 64, 64), n - 64]
    for at in places:
        is_last = at == places[-1]
        by, nine = (_K1 + ((z & 0xFF) << 1), 9) if is_last else (_K1, 1)
        if is_last:
            first = w[0] + ((n - 1) & 63)
            v = v[0] + first, v[1]
            w = first + v[0], w[1]
        x = (_turned(x + y + v[0] + _word(s, at + 8), 37) * by) & _ALL
        y = (_turned(y + v[1] + _word(s, at + 48), 42) * by) & _ALL
        x ^= (w[1] * nine) & _ALL
        y += v[0] * nine + _word(s, at + 40)
        z = _turned(z + w[0], 33) * by
        v = _weak(s, at, v[1] * by, x + w[0])
        w = _weak(s, at + 32, z + w[1], y + _word(s, at + 16))
        z, x = x, z & _ALL
    left = _joined(v[0], w[0], by) + _mixed(y) * _K0 + z
    return _joined(left & _ALL, (_joined(v[1], w[1], by) + x) & _ALL, by)


def _weak(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    a += _word(s, at)
    b = _turned(b + a + _word(s, at + 24), 21)
    c = a
    a += _word(s, at + 8) + _word(s, at + 16)
    return (a + _word(s, at + 24)) & _ALL, (b + _turned(a, 44) + c) & _ALL
