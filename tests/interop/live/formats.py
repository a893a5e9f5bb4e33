"""Formats of docs/live-protocol.md, written from that page alone: bytes to values and back, without input or output."""

import hashlib
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class Fault(Exception):
    """The sender must not have sent this: it is disconnected."""

def require(condition, text):
    if not condition:
        raise Fault(text)
def u(data): return int.from_bytes(data, "big")
def stripes_of(mask): return [i for i in range(16) if mask >> i & 1]
def short_hash(data): return hashlib.sha256(data).digest()[:20]
def path_digest(peer_id): return u(hashlib.sha256(peer_id).digest()[:2])


def bencode(value):
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    if isinstance(value, list):
        return b"l" + b"".join(map(bencode, value)) + b"e"
    return b"d" + b"".join(bencode(key) + bencode(value[key]) for key in sorted(value)) + b"e"


def parse(data, at=0, depth=0):
    """Returns a bencoded value and the position after it."""
    require(at < len(data) and depth <= 100, "bencoding is truncated or too deep")
    if data[at] in b"ld":
        items, start, at = [], at, at + 1
        while data[at : at + 1] != b"e":
            item, at = parse(data, at, depth + 1)
            items.append(item)
        return (items if data[start] == ord("l") else dict(zip(items[::2], items[1::2]))), at + 1
    if data[at] == ord("i"):
        end = data.index(b"e", at)
        number = int(data[at + 1 : end])
        require(abs(number) < 2**53, "bencoding: an integer is too large")
        return number, end + 1
    colon = data.index(b":", at)
    end = colon + 1 + int(data[at:colon])
    require(colon < end <= len(data), "bencoding is truncated")
    return data[colon + 1 : end], end


def bdecode(data):
    """Decodes one value in canonical form: the one that `bencode` writes."""
    try:
        value, _ = parse(data)
        require(bencode(value) == data, "bencoding is not canonical")
    except (ValueError, TypeError, AttributeError) as error:
        raise Fault(f"bencoding: {error}") from error
    return value


ORDER_8 = ("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",)
ORDER_8 += ("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",)
SMALL_ORDER = {bytes(32), b"\x01" + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f", *map(bytes.fromhex, ORDER_8)}


def is_valid_key(key):
    y = key[:31] + bytes([key[31] & 0x7F]) if len(key) == 32 else b"\xff" * 32
    return int.from_bytes(y, "little") < 2**255 - 19 and y not in SMALL_ORDER


def verify(key, signature, data):
    try:
        return Ed25519PublicKey.from_public_bytes(key).verify(signature, data) is None and is_valid_key(signature[:32])
    except (InvalidSignature, ValueError):
        return False


class Info:
    def __init__(self, raw):
        info = bdecode(raw)
        live = info.get(b"live") if isinstance(info, dict) else None
        require(isinstance(live, dict) and live.get(b"v") == 1, "not version 1 of a live stream")
        require(live.get(b"alg") == b"ed25519" and live.get(b"ct") in (b"mpegts", b"hls-ts", b"hls-fmp4"), "alg or ct")
        require(not {b"pieces", b"length", b"files", b"file tree"} & info.keys(), "info has files")
        self.raw, self.infohash, self.key, self.K = raw, hashlib.sha1(raw).digest(), live.get(b"k"), live.get(b"K")
        require(isinstance(self.key, bytes) and is_valid_key(self.key), "key")
        require(self.K in (4, 8, 16), "K")
        limits = {b"pd": (50, 1000), b"mx": (188 * self.K, 2_097_152), b"bps": (1, 67_108_864)}
        for name, (low, high) in (limits | {b"seg": (1000, 10_000), b"win": (0, 86_400)}).items():
            require(isinstance(live.get(name), int) and low <= live[name] <= high, name.decode())
        self.pd, self.mx = live[b"pd"], live[b"mx"]
        require(info.get(b"piece length") == 1 << (self.mx - 1).bit_length(), "piece length")
        require(isinstance(info.get(b"name"), bytes), "name")

    def signed(self, purpose, signature, data, key=None):
        return verify(key or self.key, signature, purpose + self.infohash + data)


def read_transport_file(data):
    require(len(data) <= 65_536, "the transport file is too long")
    file = bdecode(data)
    require(isinstance(file, dict) and isinstance(file.get(b"info"), dict), "no info")
    info, sig, rly = Info(bencode(file[b"info"])), file.pop(b"sig", None), file.get(b"rly", b"")
    require(isinstance(rly, bytes) and len(rly) % 18 == 0 and len(rly) <= 32 * 18, "rly")
    signed = isinstance(sig, bytes) and verify(info.key, sig, b"sluice-transport:" + bencode(file))
    require(sig is None or signed, "sig")
    return info


class Header:
    def __init__(self, raw, info):
        require(len(raw) == 124 + 20 * info.K and raw[0] == 1 and raw[2] == info.K, "header: length, version or K")
        self.raw, self.flags, self.hash, self.prev = raw, raw[1], short_hash(raw), raw[40:60]
        self.epoch, self.seq, self.ts, self.span = u(raw[4:8]), u(raw[8:14]), u(raw[14:20]), u(raw[20:22])
        self.pcr, self.rap, self.size, self.segment = u(raw[22:28]), u(raw[28:32]), u(raw[32:36]), u(raw[36:40])
        self.hashes = [raw[60 + 20 * i : 80 + 20 * i] for i in range(info.K)]
        require(info.signed(b"sluice-piece:", raw[-64:], raw[:-64]), "header: signature")
        require(self.size <= info.mx and self.span <= 5000, "header: size or span")
        require(self.ts >= self.epoch * 1000, "header: timestamp before the epoch")
        require(self.pcr < 2**33 * 300 and (self.pcr == 0 or self.flags & 16), "header: PCR")
        require(self.rap < self.size and self.rap % 188 == 0 if self.flags & 1 else self.rap == 0, "header: RAP")
        require(self.flags & 3 != 2, "header: a segment starts without a RAP")
        step = 188 * -(-self.size // (188 * info.K))
        self.lengths = [min((i + 1) * step, self.size) - min(i * step, self.size) for i in range(info.K)]
        self.place = (self.epoch, self.seq)


# Messages by kind: name, fixed fields after the kind with their sizes, and after a slash the sizes of a row's fields.
MESSAGES = """HELLO - 1 n 2; HEADER flags 1; CHUNK flags 1 stripe 1 fragment 1 epoch 4 seq 6
SUB flags 1 set 2 epoch 4 first 6 backlog 2 / 4; SUBOK - 1 set 2 epoch 4 first 6
SUBNO reason 1 set 2 wait 2 n 1 - 1 / 18 2 2; UNSUB reason 1 set 2
WIN flags 1 slots 2 epoch 4 oldest 6 base 6 queue 2 lag 2 / 1 2; PATHS - 1 set 2
REQ - 1 n 2 epoch 4 / 6 1 1 2; CANCEL - 1 n 2 epoch 4 / 6 1 1; NAK h 1 n 2 epoch 4 / 6 1 1
HREQ flags 1 count 2 epoch 4 first 6 step 2; PING - 1 token 4 clock 6; PONG - 1 token 4 clock 6
STAT - 1 n 2 epoch 4 number 6 ts 6; BYE reason 1 n 1 - 1 / 18 2 2; PROOF role 1 n 2"""
MESSAGES = [message.split("/") for message in MESSAGES.replace("\n", ";").split(";")]
ROWS = [[*map(int, "".join(message[1:]).split())] for message in MESSAGES]
FIELDS = [message[0].split()[1:] for message in MESSAGES]
FIELDS = [list(zip(fields[::2], map(int, fields[1::2]))) for fields in FIELDS]
NAMES = [message[0].split()[0] for message in MESSAGES]


def pack(name, rows=(), tail=b"", **values):
    """Writes a message: fields, rows of numbers, and the bytes after them."""
    kind = NAMES.index(name)
    numbers = [(values.get(field, 0), size) for field, size in FIELDS[kind]]
    numbers += [number for row in rows for number in zip(row, ROWS[kind])]
    return bytes([kind]) + b"".join(value.to_bytes(size, "big") for value, size in numbers) + tail


def unpack(data, K):
    """Reads a message: its name, and its fields with "rows" and "tail"; (None, {}) if the kind is unknown."""
    require(data, "empty message")
    if data[0] >= len(NAMES):
        return None, {}
    name, sizes, at, got, header = NAMES[data[0]], ROWS[data[0]], 1, {}, 124 + 20 * K

    def take(size):
        nonlocal at
        require(at + size <= len(data), f"{name} is too short")
        at += size
        return u(data[at - size : at])

    for field, size in FIELDS[data[0]]:
        got[field] = take(size)
    some, most8 = range(1, 129), range(9)
    allowed = {"CHUNK": {"fragment": range(33), "stripe": range(K)}, "SUB": {"backlog": range(33)}, "PROOF": {"n": (0, 102)}}
    allowed |= {"SUBNO": {"n": most8}, "BYE": {"n": most8}, "NAK": {"n": some, "h": most8}, "STAT": {"n": range(1025)}}
    allowed |= {"REQ": {"n": some}, "CANCEL": {"n": some}, "HREQ": {"count": range(1, 257), "step": range(1, 65_536)}}
    for field, values in ({"set": range(1, 1 << K)} | allowed.get(name, {})).items():
        require(field not in got or got[field] in values, f"{name}: {field}")
    n = got.get("n", 0)
    rows = {"SUB": got.get("set", 0).bit_count(), "WIN": K}.get(name, n if sizes else 0)
    rows = got["rows"] = [[take(size) for size in sizes] for _ in range(rows)]
    if name in ("REQ", "CANCEL", "NAK"):
        require(all(row[1] < K or (name, row[1]) == ("NAK", 255) for row in rows), f"{name}: stripe")
    if name == "PATHS":
        got["paths"] = {i: (take(1), [take(2) for _ in range(take(1))]) for i in stripes_of(got["set"])}
        require(all(len(digests) <= 15 for _, digests in got["paths"].values()), "PATHS: too many digests")
    tail = got["tail"] = data[at:]
    lengths = {"HELLO": {n} & {0, header}, "HEADER": {header}, "NAK": {18 * got.get("h", 0)}, "CHUNK": range(1, 16_385)}
    require(len(tail) in (lengths | {"STAT": {n + 64}, "PROOF": {n + 64}}).get(name, {0}), f"{name}: length")
    return name, got


def read_stat(message, info):
    """Returns the dictionary of a STAT, given the whole message."""
    require(info.signed(b"sluice-stat:", message[-64:], message[:-64]), "STAT: signature")
    body = bdecode(message[20:-64])
    require(isinstance(body, dict), "STAT: no dictionary")
    return body


def read_successor(record, info):
    """Returns key, infohash and time of a successor record; None if it is invalid."""
    valid = len(record) == 122 and is_valid_key(record[:32]) and record[32:52] != info.infohash
    if not valid or not info.signed(b"sluice-successor:", record[58:], record[:58]):
        return None
    return record[:32], record[32:52], u(record[52:58])


def proven_role(info, got, sender, receiver, challenge, now_ms):
    """Returns the role that a PROOF proves; 0 if none."""
    certificate, role = got["tail"][:-64], got["role"]
    if role not in (1, 2) or (certificate and role == 2):
        return 0
    if certificate and (not is_valid_key(certificate[:32]) or u(certificate[32:38]) < now_ms):
        return 0
    if certificate and not info.signed(b"sluice-relay:", certificate[38:], certificate[:38]):
        return 0
    signed = bytes([role]) + sender + receiver + challenge
    return role if info.signed(b"sluice-role:", got["tail"][-64:], signed, certificate[:32]) else 0
