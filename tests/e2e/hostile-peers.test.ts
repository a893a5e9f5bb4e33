import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { type EngineProcess, nameContent, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startPlainSeeder } from "../parts/plain-seeder.ts";
import { usageOf } from "../parts/process.ts";
import { openRaw, type RawSocket } from "../parts/raw-socket.ts";
import { randomFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("time");

const MIB = 1024 * 1024;
const PIECE = 256 * 1024;
const BLOCK = 16 * 1024;
/** The engine closes the connection of an attacker before it has answered this many requests that follow the attack. */
const MAX_REQUESTS_BEFORE_CLOSE = 200;
/** Ends a test that hangs; no result depends on it. */
const HANG_MS = 60_000;
/** The limit for memory retained after the attacks. */
const MAX_GROWTH_BYTES = 32 * MIB;

const u32 = (...values: number[]) => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i);
  return bytes;
};
const message = (id: number, ...parts: Uint8Array[]) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([u32(1 + body.length), Buffer.of(id), body]);
};
const [INTERESTED, HAVE, BITFIELD, REQUEST, BLOCK_SENT, EXTENDED] = [2, 4, 5, 6, 7, 20] as const;
const HAVE_NONE = message(15);

/** The target of an attack: a swarm whose content has `pieces` pieces. */
interface Target {
  readonly infohash: string;
  readonly pieces: number;
}

interface Attack {
  readonly name: string;
  /** True if the engine must cut the attacker off; undefined if it may. */
  readonly isCutOff?: boolean;
  run(raw: RawSocket, target: Target): void;
}

function greeting(infohash: string, flags: { extensions?: boolean; fast?: boolean } = {}): Buffer {
  const reserved = Buffer.alloc(8);
  if (flags.extensions) reserved[5] = 0x10;
  if (flags.fast !== false) reserved[7] = 0x04;
  const peerId = Buffer.concat([Buffer.from("-XX0001-"), randomBytes(12)]);
  return Buffer.concat([
    Buffer.from("\x13BitTorrent protocol"),
    reserved,
    Buffer.from(infohash, "hex"),
    peerId,
  ]);
}

/** An attack by a peer after a valid handshake. */
function inSwarm(name: string, isCutOff: boolean | undefined, bytes: (target: Target) => Uint8Array): Attack {
  return {
    name,
    ...(isCutOff !== undefined && { isCutOff }),
    run: (raw, target) =>
      raw.send(Buffer.concat([greeting(target.infohash, { extensions: true }), bytes(target)])),
  };
}

const extended = (id: number, dict: string, tail: Uint8Array = Buffer.alloc(0)) =>
  message(EXTENDED, Buffer.of(id), Buffer.from(dict, "latin1"), tail);

/** Loopback addresses. */
const floodedAddresses = (count: number) =>
  Buffer.concat(Array.from({ length: count }, (_, i) => Buffer.of(127, 1 + (i >> 16), i >> 8, i, 0, 1)));

function requestFlood(): Buffer {
  const requests = Array.from({ length: 100_000 }, (_, i) => message(REQUEST, u32(i % 8, 0, BLOCK)));
  return Buffer.concat([HAVE_NONE, message(INTERESTED), ...requests]);
}

const ATTACKS: readonly Attack[] = [
  { name: "garbage", isCutOff: true, run: (raw) => raw.send(randomBytes(4_096)) },
  // This may be the start of an encrypted handshake, which has the usual timeout.
  { name: "one byte", run: (raw) => raw.send("G") },
  { name: "another infohash", isCutOff: true, run: (raw) => raw.send(greeting("ab".repeat(20))) },
  inSwarm("a length of 4 GiB", true, () => Buffer.concat([u32(0xffffffff), Buffer.of(EXTENDED)])),
  inSwarm("a length just above the limit", true, () =>
    Buffer.concat([u32(1024 * 1024 + 3), Buffer.of(20, 1)]),
  ),
  inSwarm("100,000 keep-alives", undefined, () => Buffer.alloc(400_000)),
  inSwarm("a bitfield too long", true, ({ pieces }) =>
    message(BITFIELD, Buffer.alloc(Math.ceil(pieces / 8) + 1)),
  ),
  inSwarm("a bitfield too short", true, ({ pieces }) =>
    message(BITFIELD, Buffer.alloc(Math.ceil(pieces / 8) - 1)),
  ),
  inSwarm("a have beyond the end", true, ({ pieces }) => message(HAVE, u32(pieces))),
  inSwarm("a have of piece 2^32 - 1", true, () => message(HAVE, u32(0xffffffff))),
  inSwarm("200 blocks that were not requested", true, () =>
    Buffer.concat([
      HAVE_NONE,
      ...Array.from({ length: 200 }, () => message(BLOCK_SENT, u32(1, 0), Buffer.alloc(BLOCK))),
    ]),
  ),
  inSwarm("a block of a piece that does not exist", true, () =>
    Buffer.concat([HAVE_NONE, message(BLOCK_SENT, u32(1 << 30, 0), Buffer.alloc(BLOCK))]),
  ),
  inSwarm("100,000 requests", undefined, requestFlood),
  {
    name: "100,000 requests by a peer that does not read",
    run(raw, target) {
      raw.socket.pause();
      raw.send(Buffer.concat([greeting(target.infohash), requestFlood()]));
    },
  },
  inSwarm("a request of 2 GiB", true, () =>
    Buffer.concat([HAVE_NONE, message(INTERESTED), message(REQUEST, u32(0, 0, 0x7fffffff))]),
  ),
  inSwarm("metadata of 2^31 bytes", undefined, () =>
    Buffer.concat([HAVE_NONE, extended(0, "d1:md11:ut_metadatai2ee13:metadata_sizei2147483648ee")]),
  ),
  inSwarm("an extended handshake a hundred thousand lists deep", undefined, () =>
    Buffer.concat([HAVE_NONE, extended(0, "l".repeat(100_000))]),
  ),
  inSwarm("10,000 addresses by PEX", undefined, () =>
    Buffer.concat([
      HAVE_NONE,
      extended(0, "d1:md6:ut_pexi1eee"),
      extended(1, `d5:added${60_000}:${floodedAddresses(10_000).toString("latin1")}e`),
    ]),
  ),
  inSwarm("a message that drips", undefined, () => Buffer.concat([HAVE_NONE, u32(17), Buffer.of(REQUEST)])),
];

async function attack(engine: EngineProcess, target: Target): Promise<RawSocket[]> {
  const open: RawSocket[] = [];
  for (const each of ATTACKS) {
    const raw = await openRaw(engine.p2pPort);
    open.push(raw);
    each.run(raw, target);
    let isClosed = false;
    for (let asked = 0; asked < MAX_REQUESTS_BEFORE_CLOSE && !isClosed; asked++) {
      await isWell(engine, each.name);
      isClosed = each.isCutOff !== true || (await raw.closes(0));
    }
    assert.ok(isClosed, `${each.name}: not cut off`);
  }
  return open;
}

async function isWell(engine: EngineProcess, what: string): Promise<void> {
  const answer = await fetch(`${engine.url}/webui/api/service?method=get_version`, {
    signal: AbortSignal.timeout(HANG_MS),
  });
  assert.equal(answer.status, 200, what);
  await answer.arrayBuffer();
}

/** Checks that the engine answers a peer of its swarm while `silent` others hold their connections open. */
async function greetsBeside(engine: EngineProcess, target: Target, silent: number): Promise<void> {
  const drips = await Promise.all(Array.from({ length: silent }, () => openRaw(engine.p2pPort)));
  for (const drip of drips) drip.send("\x13Bit");
  const good = await openRaw(engine.p2pPort);
  try {
    good.send(greeting(target.infohash));
    const heard = await good.hears((bytes) => bytes.length >= 68, HANG_MS);
    assert.ok(heard, `no handshake beside ${silent} silent connections`);
    assert.equal(heard.toString("hex", 28, 48), target.infohash);
  } finally {
    for (const raw of [...drips, good]) raw.end();
  }
}

test("hostile peers: the film arrives complete, memory stays flat, the engine answers and becomes idle", {
  timeout: 120_000,
}, async () => {
  const scratch = await tempFolder("hostile");
  await mkdir(scratch.file("film"));
  await randomFile(scratch.file("film/a.bin"), 16 * MIB);
  await randomFile(scratch.file("film/b.bin"), 20 * MIB);
  const torrent = await torrentOf(scratch.file("film"), PIECE, scratch.file("film.torrent"));
  const parts = [await readFile(scratch.file("film/a.bin")), await readFile(scratch.file("film/b.bin"))];
  const content = new Uint8Array(Buffer.concat(parts));
  const target = { infohash: torrent.infohash, pieces: content.length / PIECE };
  const seeder = await startPlainSeeder(torrent.infohash, content, PIECE, { blockMs: 3 });
  const engine = await startEngine({ env: { SLUICE_MEMORY_LIMIT: "16 MiB" } });
  let open: RawSocket[] = [];
  try {
    await nameContent(engine, {}, torrent.bytes);
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    await nameContent(engine, { magnet });
    const read = async (index: number) =>
      (await sha1OfStream((await fetch(`${engine.url}/files/${torrent.infohash}/${index}/x.bin`)).body!))
        .sha1;
    const sha1 = (bytes: Uint8Array) => createHash("sha1").update(bytes).digest("hex");
    // Play first, so that the memory of playback is part of the baseline.
    assert.equal(await read(0), sha1(parts[0]!));
    const before = usageOf(engine.pid).residentBytes;
    const playing = read(1);
    open = await attack(engine, target);
    await greetsBeside(engine, target, 80);
    assert.equal(await playing, sha1(parts[1]!), "the reader got wrong bytes");
    const growth = usageOf(engine.pid).residentBytes - before;
    assert.ok(growth <= MAX_GROWTH_BYTES, `memory grew by ${growth} bytes`);
    for (const raw of open) raw.end();
    await isWell(engine, "afterwards");
    assert.ok(await comesToRest(engine), "the engine is still busy");
  } finally {
    for (const raw of open) raw.end();
    await engine.stop();
    await seeder.stop();
    await scratch.remove();
  }
});

/** Waits for a second in which the engine uses less than 20% CPU; false if none comes in time. */
async function comesToRest(engine: EngineProcess): Promise<boolean> {
  for (let second = 0; second < 60; second++) {
    const { cpuSeconds } = usageOf(engine.pid);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    if (usageOf(engine.pid).cpuSeconds - cpuSeconds < 0.2) return true;
  }
  return false;
}
