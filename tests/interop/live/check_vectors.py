"""Checks the test vectors in a folder against docs/live-protocol.md, without any code of Sluice. Prints "ok"."""

import json, sys
from pathlib import Path
from formats import Fault, Header, Info, hashlib, is_valid_key, pack, parse, proven_role, read_stat, read_successor
from formats import read_transport_file, require, short_hash, unpack, verify

FOLDER, raw = Path(sys.argv[1]), bytes.fromhex
VECTORS, CASES = [json.loads((FOLDER / name).read_text("utf-8")) for name in ("vectors.json", "cases.json")]


def decide(name, accepts):
    for case in CASES[name]:
        try:
            accepted = accepts(case)
        except Fault:
            accepted = False
        require(bool(accepted) == case["isValid"], case["what"])


def chunks_of(header, piece):
    step = max(header.lengths)
    chunks = [piece[i * step : i * step + length] for i, length in enumerate(header.lengths)]
    require(header.size == len(piece) and [short_hash(chunk) for chunk in chunks] == header.hashes, "chunks")
    return chunks


info = read_transport_file((FOLDER / "example.sluice").read_bytes())
require(info.infohash.hex() == VECTORS["transportFile"]["infohash"], "infohash")
previous = bytes(20)
for vector in VECTORS["pieces"]:
    header = Header(raw(vector["headerBytes"]), info)
    require(header.prev == previous and header.seq == vector["header"]["seq"], "chain")
    previous, _ = header.hash, chunks_of(header, raw(vector["piece"]))
for vector in VECTORS["messages"]:
    data = raw(vector["bytes"])
    name, got = unpack(data, info.K)
    rows, tail = got.pop("rows"), got.pop("tail") or (data[4:] if got.pop("paths", None) else b"")
    require(name == vector["name"].split()[0] and pack(name, rows, tail, **got) == data, vector["name"])
    require(name != "STAT" or read_stat(data, info) is not None, "STAT")
require({raw(vector["bytes"])[0] for vector in VECTORS["messages"]} == set(range(17)), "kinds of messages")
for vector in VECTORS["proofs"]["examples"]:
    ids = [raw(vector["parties"][name]) for name in ("prover", "verifier", "challenge")]
    proves = lambda data: proven_role(info, unpack(data, info.K)[1], *ids, 1_790_000_000_000)
    require(proves(raw(vector["bytes"])) == {"relay": 1, "source": 2}[vector["role"]], "PROOF")
require(read_successor(raw(VECTORS["successor"]["bytes"]), info), "successor record")
decide("proofs", lambda case: proves(raw(case["bytes"])))
decide("successors", lambda case: read_successor(raw(case["bytes"]), info))
decide("signatures", lambda case: verify(raw(case["key"]), raw(case["signature"]), raw(case["message"])))
decide("keys", lambda case: is_valid_key(raw(case["key"])))
decide("headers", lambda case: Header(raw(case["bytes"]), info))
decide("files", lambda case: read_transport_file(raw(case["bytes"])))
for case in CASES["layouts"]:
    stream, piece, at = Info(raw(case["infoBytes"])), bytes(i % 251 for i in range(case["length"])), 0
    chunks, joined = chunks_of(Header(raw(case["headerBytes"]), stream), piece), [b""] * stream.K
    for message in case["messages"]:
        _, got = unpack(raw(message["head"]) + piece[at : at + message["bytes"]], stream.K)
        require(len(joined[got["stripe"]]) == 16_384 * got["fragment"], "order of fragments")
        joined[got["stripe"]] += got["tail"]
        at += message["bytes"]
        require((joined[got["stripe"]] == chunks[got["stripe"]]) == bool(got["flags"] & 1), "last fragment")
    require(joined == chunks and [*map(len, chunks)] == case["chunkLengths"], "fragments of all chunks")
chain = {name: Header(raw(data), info) for name, data in CASES["chain"]["headers"].items()}
for case in CASES["chain"]["cases"]:
    last, header = chain[case["known"][-1]], chain[case["header"]]
    require((header.prev == last.hash and header.seq > last.seq) == (case["is"] == "follows"), case["header"])
    require((header.epoch > last.epoch) == (case["is"] == "later epoch"), case["header"])
metadata = raw(CASES["metadata"]["data"])
require(hashlib.sha1(metadata[parse(metadata)[1] :]).hexdigest() == CASES["metadata"]["infohash"], "metadata")
print("ok")
