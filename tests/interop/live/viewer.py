"""A viewer of a live stream, written from docs/live-protocol.md alone. It uploads nothing. Prints its state as JSON.
usage: viewer.py FILE OUTPUT HOST:PORT…    (a transport file, a file for the stream, peers)"""

import asyncio, json, os, struct, sys, time
from formats import Fault, Header, bencode, pack, parse, path_digest, proven_role, read_stat, read_transport_file
from formats import require, short_hash, stripes_of, u, unpack

EXTENDED, LIVE, START, LAG_MS, PART = 20, 3, b"\x13BitTorrent protocol", 8000, 16_384


def now_ms(): return time.time() * 1000
def mask_of(bits): return sum(1 << i for i, bit in enumerate(bits) if bit)


class Peer:
    """A connection: what the other side claims, and what was asked of it. Times in milliseconds."""

    def __init__(self, viewer, writer):
        self.viewer, self.writer, self.challenge, self.ids, self.sl = viewer, writer, os.urandom(16), {}, None
        self.greeted, self.lacks_head, self.win, self.paths, self.role = False, False, None, {}, 0
        self.delivered, self.last, self.parts, self.asked = 0, {}, {}, {}
        self.vain, self.sub_after, self.req_after, self.hreq_after = 0, 0, 0, 0

    def raw(self, kind, body): self.writer.write(struct.pack(">IBB", len(body) + 2, EXTENDED, kind) + body)

    def send(self, name, *rows, **values):
        if self.sl and not self.writer.is_closing():
            self.raw(self.ids[b"sl_live"], pack(name, *rows, **values))

    async def run(self, reader):
        viewer, sl = self.viewer, {b"v": 1, b"role": 0, b"up": 0, b"n": self.challenge}
        self.writer.write(START + bytes([0, 0, 0, 0, 0, 16, 0, 0]) + viewer.info.infohash + viewer.id)
        theirs = await reader.readexactly(68)
        require(theirs[:20] == START and theirs[25] & 16, "not BitTorrent with extensions")
        require(theirs[28:48] == viewer.info.infohash and theirs[48:] != viewer.id, "another swarm, or ourselves")
        self.id = theirs[48:]
        self.raw(0, bencode({b"m": {b"sl_live": LIVE}, b"v": b"python", b"sl": sl}))
        while True:
            length = u(await asyncio.wait_for(reader.readexactly(4), 130))
            require(length <= 20_482, "too long a message")
            body = await asyncio.wait_for(reader.readexactly(length), 60)
            if length > 1 and body[0] == EXTENDED:
                self.extended(body[1], body[2:])

    def extended(self, kind, body):
        if kind == 0:
            message, head = parse(body)[0], self.viewer.head
            self.ids |= message.get(b"m", {})
            sl = message.get(b"sl")
            if not self.sl and sl and self.ids.get(b"sl_live"):
                require(sl.get(b"min", sl[b"v"]) <= 1 <= sl[b"v"], "no common version")
                self.sl, self.lacks_head, raw = sl, head is None, head.raw if head else b""
                self.send("HELLO", tail=raw, n=len(raw))
                self.viewer.tell(self)
        elif kind == LIVE and self.sl:
            name, got = unpack(body, self.viewer.info.K)
            if name and self.greeted != (name == "HELLO"):
                self.greeted = True
                getattr(self.viewer, "on_" + name.lower(), lambda *_: None)(self, got, body)

    def holds(self, seq, stripe, epoch):
        if not self.win or self.win["epoch"] != epoch or seq < self.win["oldest"]:
            return False
        run, beyond = self.win["rows"][stripe]
        ahead = seq - max(self.win["base"], self.win["oldest"]) - run
        return ahead < 0 or (1 <= ahead <= 16 and beyond >> (ahead - 1) & 1 == 1)

    def newest(self):
        rows = self.win["rows"] if self.win else []
        return max((self.win["base"] + run + beyond.bit_length() - 1 for run, beyond in rows), default=0)


class Viewer:
    def __init__(self, file, output):
        self.info, self.id, self.output = read_transport_file(file), b"-PY0100-" + os.urandom(12), output
        self.peers, self.stat_place, self.digest, self.ended = set(), (0, -1), path_digest(self.id), False
        self.count = dict(chunks=0, pieces=0, missed=0, bytes=0, pulled=0, disconnected=0)
        self.last_header, self.ticked, self.late_at = 0, 0, 0
        self.forget(0)

    def forget(self, epoch):
        """Starts an epoch: headers by seq and by the hash of the preceding one, the head, and the last one played."""
        self.epoch, self.headers, self.after, self.head, self.place, self.began = epoch, {}, {}, None, None, 0
        self.parents, self.asked_parents, self.orphans, self.gap_since = {}, {}, {}, 0

    async def dial(self, address):
        while not self.ended:
            reader, writer = await asyncio.open_connection(*address.rsplit(":", 1))
            peer = Peer(self, writer)
            self.peers.add(peer)
            try:
                await peer.run(reader)
            except (Fault, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
                print(json.dumps({"disconnected": address, "reason": repr(error)}), flush=True)
            writer.close()
            self.peers.discard(peer)
            self.drop(peer, range(self.info.K))
            self.count["disconnected"] += 1
            await asyncio.sleep(0.5)

    def drop(self, peer, stripes):
        """Ends what was asked of, and granted by, a peer."""
        self.parents = {i: p for i, p in self.parents.items() if p is not peer or i not in stripes}
        self.asked_parents = {i: p for i, p in self.asked_parents.items() if p[0] is not peer or i not in stripes}

    def has(self, seq, i): return seq in self.headers and self.headers[seq].chunks[i] is not None

    def on_header(self, peer, got, body):
        raw = got["tail"]
        if not raw or (u(raw[4:8]) == self.epoch and u(raw[8:14]) in self.headers):
            return
        header = Header(raw, self.info)
        is_old = header.epoch < self.epoch or (self.head and header.ts < self.head.ts - 30_000)
        if is_old or header.ts > now_ms() + 600_000:
            return
        if header.epoch > self.epoch:
            self.forget(header.epoch)
        header.arrived, header.chunks = now_ms(), [None if length else b"" for length in header.lengths]
        self.headers[header.seq] = self.after[header.prev] = header
        self.last_header = now_ms()
        if self.head is None or header.seq > self.head.seq:
            self.head = header
        for other in [other for other in self.peers if other.lacks_head]:
            other.send("HEADER", tail=raw)
            other.lacks_head = False
        for sender, stripe, data, _ in self.orphans.pop(header.seq, []):
            self.chunk(sender, header, stripe, data)
        self.play()
    on_hello = on_header

    def on_chunk(self, peer, got, body):
        seq, stripe, is_last = got["seq"], got["stripe"], got["flags"] & 1
        parts = peer.parts.setdefault((got["epoch"], seq, stripe), [])
        require(len(peer.parts) <= 4 and got["fragment"] == len(parts), "CHUNK: order of fragments")
        require(is_last or len(got["tail"]) == PART, "CHUNK: a short fragment")
        parts.append(got["tail"])
        data = b"".join(peer.parts.pop((got["epoch"], seq, stripe))) if is_last else b""
        if data and got["epoch"] == self.epoch and seq in self.headers:
            self.chunk(peer, self.headers[seq], stripe, data)
        elif data and got["epoch"] == self.epoch and sum(map(len, self.orphans.values())) < 64:
            self.orphans.setdefault(seq, []).append((peer, stripe, data, now_ms()))

    def chunk(self, peer, header, stripe, data):
        key = (header.seq, stripe)
        self.count["pulled"] += peer.asked.pop(key, None) is not None
        if header.chunks[stripe] is not None:
            return
        require((len(data), short_hash(data)) == (header.lengths[stripe], header.hashes[stripe]), "a chunk does not fit")
        header.chunks[stripe] = data
        peer.delivered, peer.last[stripe], peer.vain = peer.delivered + 1, now_ms(), 0
        self.count["chunks"] += 1
        for other in self.peers:
            if other.asked.pop(key, None):
                other.send("CANCEL", [(*key, 0)], n=1, epoch=self.epoch)
        self.play()

    def play(self):
        """Writes all pieces that are next; leaves out those that are incomplete after the whole lag."""
        header = self.after.get(self.place.hash) if self.place else None
        if not self.place and self.began and now_ms() > self.began + 500:
            starts = [header for header in self.headers.values() if header.flags & 1]
            starts = [header for header in starts if header.ts <= self.head.ts - 600] or starts
            header = max(starts, key=lambda header: header.seq, default=None)
        while header and not self.ended and (None not in header.chunks or self.place and now_ms() > header.arrived + LAG_MS):
            is_complete, start = None not in header.chunks, 0 if self.place else header.rap
            self.count["pieces" if is_complete else "missed"] += 1
            self.count["bytes"] += self.output.write(b"".join(header.chunks)[start:] if is_complete else b"")
            self.place, self.ended = header, bool(header.flags & 8)
            header = self.after.get(header.hash)

    def on_sub(self, peer, got, body): peer.send("SUBNO", set=got["set"], wait=10_000)
    def on_hreq(self, peer, got, body): peer.send("NAK", [(got["first"], 255, 0)], n=1, epoch=got["epoch"])
    def on_bye(self, peer, got, body): require(False, f"BYE {got['reason']}")
    def on_ping(self, peer, got, body): peer.send("PONG", token=got["token"])

    def on_req(self, peer, got, body):
        peer.send("NAK", [(seq, stripe, 2) for seq, stripe, _, _ in got["rows"]], n=got["n"], epoch=got["epoch"])

    def on_subok(self, peer, got, body):
        for i in [i for i in stripes_of(got["set"]) if self.asked_parents.pop(i, (None,))[0] is peer]:
            self.parents[i], peer.last[i] = peer, now_ms() + 300

    def on_subno(self, peer, got, body):
        peer.sub_after = now_ms() + max(500, got.get("wait", 1000))
        self.drop(peer, stripes_of(got["set"]))
    on_unsub = on_subno

    def on_win(self, peer, got, body):
        peer.win = got
        if got["epoch"] > self.epoch:
            self.ask_headers(peer, got["epoch"], peer.newest() - 7, 8)

    def on_paths(self, peer, got, body):
        peer.paths |= got["paths"]
        for i, (_, digests) in got["paths"].items():
            if self.parents.get(i) is peer and self.digest in digests:
                self.leave(i, peer, 1000)

    def on_nak(self, peer, got, body):
        for seq, i, reason in got["rows"]:
            peer.vain += peer.asked.pop((seq, i), None) is not None and reason in (1, 2)
            peer.hreq_after = now_ms() + 2000 if i == 255 and reason == 2 else peer.hreq_after
        peer.req_after = now_ms() + min(2400, 150 * 2 ** min(peer.vain, 4))

    def on_stat(self, peer, got, body):
        if (got["epoch"], got["number"]) > self.stat_place:
            self.stat_place, _ = (got["epoch"], got["number"]), read_stat(body, self.info)
            for other in [other for other in self.peers - {peer} if other.sl]:
                other.raw(other.ids[b"sl_live"], body)

    def on_proof(self, peer, got, body):
        peer.role = peer.role or proven_role(self.info, got, peer.id, self.id, peer.challenge, now_ms())

    def tell(self, peer):
        if not self.head:
            return
        base, rows, tail = self.place.seq + 1 if self.place else min(self.headers), [], b""
        for i in range(self.info.K):
            held = [self.has(seq, i) for seq in range(base, base + 272)]
            run = min(255, (held + [False]).index(False))
            rows.append((run, mask_of(held[run + 1 : run + 17])))
            depth, digests = self.parents[i].paths.get(i, (254, [])) if i in self.parents else (254, [])
            digests = [path_digest(self.parents[i].id), *digests][:15] if i in self.parents else []
            tail += struct.pack(f">BB{len(digests)}H", min(255, depth + 1), len(digests), *digests)
        peer.send("WIN", rows, epoch=self.epoch, oldest=min(self.headers), base=base)
        peer.send("PATHS", tail=tail, set=(1 << self.info.K) - 1)

    def ask_headers(self, peer, epoch, first, count):
        if now_ms() > peer.hreq_after:
            peer.hreq_after = now_ms() + 500
            peer.send("HREQ", epoch=epoch, first=max(0, first), count=count, step=1)

    def leave(self, i, peer, avoid_ms):
        peer.send("UNSUB", reason=1, set=1 << i)
        peer.sub_after = now_ms() + avoid_ms
        self.drop(peer, [i])

    def tick(self, ticks):  # every 50 ms
        ready, now, pd = [peer for peer in self.peers if peer.greeted], now_ms(), self.info.pd
        for peer in ready if ticks % 10 == 0 else []:
            self.tell(peer)
        self.late_at = now if now > self.ticked + 200 else self.late_at  # this program was late, not its parents
        self.ticked = now
        if not self.head or not ready:
            return
        self.play()
        head, first = self.head.seq, self.place.seq + 1 if self.place else max(0, self.head.seq - 3000 // pd)
        self.find_headers(ready, now, head)
        self.subscribe(ready, now, first)
        self.pull(ready, now, first, head)
        for seq in [seq for seq in self.headers if seq < head - 30_000 // pd]:
            self.after.pop(self.headers.pop(seq).prev, None)
        self.orphans = {seq: waiting for seq, waiting in self.orphans.items() if now < waiting[0][3] + LAG_MS}

    def find_headers(self, ready, now, head):
        """Requests the headers of the last 3 s at the start, of waiting chunks, of new pieces, and of gaps."""
        ahead, recent = max(ready, key=Peer.newest), 3000 // self.info.pd
        if not self.began:
            self.began = now
            self.ask_headers(ahead, self.epoch, head - recent, recent)
        for seq in [seq for seq, waiting in self.orphans.items() if now > waiting[0][3] + 60]:
            self.ask_headers(self.orphans[seq][0][0], self.epoch, seq, 1)
        if now > self.last_header + 500 and ahead.newest() > head:
            self.ask_headers(ahead, self.epoch, max(head + 1, ahead.newest() - 31), 32)
        if not self.place or self.place is self.head or self.after.get(self.place.hash):
            self.gap_since = now
        elif now > self.gap_since + LAG_MS:  # no peer has them
            self.after[self.place.hash] = min((h for h in self.headers.values() if h.seq > self.place.seq), key=lambda h: h.seq)
            self.count["missed"] += 1
        elif now > self.gap_since + 200:
            self.ask_headers(min(ready, key=lambda peer: peer.hreq_after), self.epoch, self.place.seq + 1, 32)

    def subscribe(self, ready, now, first):
        pd, wanted, avoid_ms = self.info.pd, {}, 20_000 if len(ready) > 1 else 2000
        for i, parent in list(self.parents.items()):
            empty = max((header.arrived for header in self.headers.values() if not header.lengths[i]), default=0)
            is_silent = now < self.last_header + 1000 and now > max(parent.last[i], empty) + 350 + pd
            if is_silent and now > self.late_at + 1000:
                self.leave(i, parent, avoid_ms)
        for i, (peer, at) in [(i, asked) for i, asked in self.asked_parents.items() if now > asked[1] + 1500]:
            self.leave(i, peer, avoid_ms)
        for i in [i for i in range(self.info.K) if i not in self.parents and i not in self.asked_parents]:
            fit = [p for p in ready if now > p.sub_after and p.win and p.win["flags"] & 1 and i in p.paths]
            fit = [p for p in fit if p.paths[i][0] < 31 and self.digest not in p.paths[i][1]]
            full = lambda p: p.delivered < 16 and len(wanted.get(p, ())) >= self.info.K // 4
            for best in sorted(fit, key=lambda p: (full(p), 80 * p.paths[i][0] + p.win["lag"]))[:1]:
                wanted.setdefault(best, []).append(i)
        for peer, stripes in wanted.items():
            have = [[mask_of(self.has(first + n, i) for n in range(32))] for i in stripes]
            self.asked_parents |= {i: (peer, now) for i in stripes}
            values = dict(set=sum(1 << i for i in stripes), epoch=self.epoch, first=first, backlog=min(32, 1000 // pd))
            peer.send("SUB", have, flags=int(len(ready) < 3), **values)

    def pull(self, ready, now, first, head):
        asked, wants = {key for peer in ready for key, at in peer.asked.items() if now < at + 450}, {}
        late = [h for h in self.headers.values() if first <= h.seq <= head and now > h.arrived + 300]
        for key in [(h.seq, i) for h in late for i in range(self.info.K) if h.chunks[i] is None and (h.seq, i) not in asked]:
            holders = [peer for peer in ready if now > peer.req_after and peer.holds(*key, self.epoch)]
            for best in sorted(holders, key=lambda peer: (key in peer.asked, peer.vain, peer.win["queue"]))[:1]:
                wants.setdefault(best, []).append((*key, 0, LAG_MS))
        for peer, rows in wants.items():
            peer.asked |= {(seq, i): now for seq, i, _, _ in rows[:128]}
            peer.send("REQ", rows[:128], n=len(rows[:128]), epoch=self.epoch)


async def main(file, output, *peers):
    viewer = Viewer(open(file, "rb").read(), open(output, "wb", 0))
    tasks, ticks = [asyncio.create_task(viewer.dial(peer)) for peer in peers], 0
    while not viewer.ended:
        await asyncio.wait(tasks, timeout=0.05, return_when=asyncio.FIRST_EXCEPTION)
        ticks += 1
        viewer.tick(ticks)
        [task.result() for task in tasks if task.done()]
        if ticks % 20 == 0 or viewer.ended:
            state = dict(roles=[peer.role for peer in viewer.peers], parents=len(viewer.parents), ended=viewer.ended)
            print(json.dumps(viewer.count | state), flush=True)


asyncio.run(main(*sys.argv[1:]))
