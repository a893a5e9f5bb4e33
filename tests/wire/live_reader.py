"""Reads the test vectors of the live protocol without any code of Sluice, only from docs/live-protocol.md.

usage: live_reader.py FOLDER    (the folder of vectors.json and example.sluice; prints "ok" or fails)
"""

import hashlib
import json
import struct
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def bdecode(data, at=0):
    """Returns a value and the offset after it."""
    lead = data[at : at + 1]
    if lead == b"i":
        end = data.index(b"e", at)
        return int(data[at + 1 : end]), end + 1
    if lead in (b"l", b"d"):
        items, at = [], at + 1
        while data[at : at + 1] != b"e":
            item, at = bdecode(data, at)
            items.append(item)
        if lead == b"l":
            return items, at + 1
        return dict(zip(items[::2], items[1::2])), at + 1
    colon = data.index(b":", at)
    end = colon + 1 + int(data[at:colon])
    return data[colon + 1 : end], end


def bencode(value):
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    if isinstance(value, list):
        return b"l" + b"".join(map(bencode, value)) + b"e"
    return b"d" + b"".join(bencode(k) + bencode(value[k]) for k in sorted(value)) + b"e"


def u48(data, at):
    return int.from_bytes(data[at : at + 6], "big")


def short_hash(data):
    return hashlib.sha256(data).digest()[:20]


def is_signed(key, purpose, data):
    try:
        key.verify(data[-64:], purpose + data[:-64])
        return True
    except InvalidSignature:
        return False


def read_file(data, expected):
    file, end = bdecode(data)
    assert end == len(data) and bencode(file) == data, "canonical"
    live = file[b"info"][b"live"]
    assert live[b"v"] == 1 and live[b"alg"] == b"ed25519"
    infohash = hashlib.sha1(bencode(file[b"info"])).digest()
    assert infohash.hex() == expected["infohash"]
    assert expected["contentId"] == expected["infohash"]
    key = Ed25519PublicKey.from_public_bytes(live[b"k"])
    unsigned = bencode({k: v for k, v in file.items() if k != b"sig"})
    key.verify(file[b"sig"], b"sluice-transport:" + unsigned)
    assert [live[b"K"], live[b"pd"], live[b"mx"], live[b"seg"]] == [4, 125, 65536, 2000]
    assert file[b"rly"][:18] == bytes(10) + b"\xff\xff" + bytes([192, 0, 2, 7]) + struct.pack(">H", 8621)
    return live, infohash, key


def read_header(data, stripes, purpose, key):
    assert len(data) == 124 + 20 * stripes and data[0] == 1 and data[2] == stripes
    assert is_signed(key, purpose, data)
    flags = data[1]
    return {
        "epoch": struct.unpack_from(">I", data, 4)[0],
        "seq": u48(data, 8),
        "timestampMs": u48(data, 14),
        "spanMs": struct.unpack_from(">H", data, 20)[0],
        **({"clockReference": u48(data, 22)} if flags & 16 else {}),
        **({"randomAccessOffset": struct.unpack_from(">I", data, 28)[0]} if flags & 1 else {}),
        "isSegmentStart": bool(flags & 2),
        "segment": struct.unpack_from(">I", data, 36)[0],
        "isDiscontinuity": bool(flags & 4),
        "isEnd": bool(flags & 8),
        "pieceBytes": struct.unpack_from(">I", data, 32)[0],
        "previousHash": data[40:60].hex(),
        "chunkHashes": data[60:-64].hex(),
    }


def check_pieces(pieces, stripes, purpose, key):
    previous = bytes(20)
    for expected in pieces:
        raw, piece = bytes.fromhex(expected["headerBytes"]), bytes.fromhex(expected["piece"])
        header = read_header(raw, stripes, purpose, key)
        assert header == expected["header"], header
        assert header["previousHash"] == previous.hex()
        previous = short_hash(raw)
        size = 188 * -(-len(piece) // (188 * stripes))
        chunks = [piece[i * size : (i + 1) * size] for i in range(stripes)]
        assert b"".join(chunks) == piece
        assert b"".join(map(short_hash, chunks)).hex() == header["chunkHashes"]


def candidate(data, at):
    free, lag = struct.unpack_from(">HH", data, at + 18)
    return [data[at : at + 16].hex(), struct.unpack_from(">H", data, at + 16)[0], free, lag]


def check_messages(messages, infohash, key):
    raw = {m["name"]: bytes.fromhex(m["bytes"]) for m in messages}
    expected = {m["name"]: m["message"] for m in messages}
    for name, kind in zip(
        "HELLO HEADER CHUNK SUB SUBOK SUBNO UNSUB WIN PATHS REQ CANCEL NAK HREQ PING PONG STAT BYE".split(), range(17)
    ):
        assert raw[name][0] == kind, name
    assert raw["HELLO"][4:].hex() == expected["HELLO"]["header"]
    assert raw["HEADER that was asked for"][1] == 1 and raw["HEADER"][2:].hex() == expected["HEADER"]["header"]
    _, flags, stripe, fragment, epoch = struct.unpack_from(">BBBBI", raw["CHUNK"])
    assert [flags, stripe, fragment, epoch, u48(raw["CHUNK"], 8)] == [1, 2, 0, expected["CHUNK"]["epoch"], expected["CHUNK"]["seq"]]
    assert raw["CHUNK that was asked for"][1] == 3
    sub = raw["SUB"]
    assert [sub[1], *struct.unpack_from(">HI", sub, 2), u48(sub, 8)] == [1, 10, expected["SUB"]["epoch"], expected["SUB"]["startSeq"]]
    assert list(struct.unpack_from(">HII", sub, 14)) == [8, 5, 0x80000001] and len(sub) == 24
    no = raw["SUBNO"]
    assert [no[1], *struct.unpack_from(">HHB", no, 2), len(no)] == [1, 8, 2500, 2, 8 + 44]
    assert candidate(no, 8) == ["00" * 10 + "ffffc0000208", 8621, 12, 350]
    win, window = raw["WIN"], expected["WIN"]["window"]
    assert len(win) == 24 + 3 * 4 and win[1] == 1
    assert [u48(win, 8), u48(win, 14)] == [window["oldestSeq"], window["baseSeq"]]
    assert list(struct.unpack_from(">HH", win, 20)) == [12, 250]
    assert [win[24 + 3 * i] for i in range(4)] == [2, 3, 0, 255]
    assert struct.unpack_from(">H", win, 24 + 3 * 2 + 1)[0] == 0x8003
    assert raw["PATHS"].hex() == "08000009" + "0303" + "1234abcd0001" + "ff00"
    req = raw["REQ"]
    assert struct.unpack_from(">H", req, 2)[0] == 2 and len(req) == 28
    assert [u48(req, 18), req[24], struct.unpack_from(">H", req, 26)[0]] == [expected["REQ"]["chunks"][1]["seq"], 0, 575]
    nak = raw["NAK"]
    assert [nak[1], nak[14], nak[15], nak[22], nak[23], len(nak)] == [1, 3, 3, 255, 0, 8 + 16 + 18]
    assert list(struct.unpack_from(">BBH", raw["HREQ"])) == [12, 1, 30] and struct.unpack_from(">H", raw["HREQ"], 14)[0] == 16
    assert struct.unpack_from(">I", raw["PONG"], 2)[0] == 0xDEADBEEF and u48(raw["PONG"], 6) == expected["PONG"]["clockMs"]
    stat = raw["STAT"]
    length = struct.unpack_from(">H", stat, 2)[0]
    body, end = bdecode(stat, 20)
    assert end == 20 + length and len(stat) == 84 + length and body[b"bps"] == 120000
    assert is_signed(key, b"sluice-stat:" + infohash, stat)
    assert not is_signed(key, b"sluice-piece:" + infohash, stat)
    assert list(raw["BYE"][1:4]) == [0, 1, 0] and len(raw["BYE"]) == 4 + 22


def main(folder):
    vectors = json.load(open(f"{folder}/vectors.json", encoding="utf-8"))
    data = open(f"{folder}/example.sluice", "rb").read()
    assert data.hex() == vectors["transportFile"]["bytes"]
    live, infohash, key = read_file(data, vectors["transportFile"])
    check_pieces(vectors["pieces"], live[b"K"], b"sluice-piece:" + infohash, key)
    check_messages(vectors["messages"], infohash, key)
    print("ok")


main(sys.argv[1])
