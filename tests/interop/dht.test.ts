import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { runtime } from "#runtime";
import { toHex } from "../../src/base/bytes.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { type RunningDht, startDht } from "../../src/net/dht.ts";
import { bindSharedUdp } from "../../src/net/shared-udp.ts";
import { itemMessage } from "../../src/wire/dht/item.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("libtorrent");

const SCRIPT = fileURLToPath(new URL("./libtorrent_dht.py", import.meta.url));
const text = (words: string) => new TextEncoder().encode(words);

/** Two of our nodes and one of libtorrent; the second learns of the others only from the first. */
async function three(name: string) {
  const scratch = await tempFolder(name);
  const ends: (() => unknown)[] = [];
  const lt = startProcess(PYTHON, [SCRIPT], { stdin: "pipe" });
  ends.push(lt.stop);
  const { port } = JSON.parse(await lt.line((line) => line.includes('"listening"')));
  const ours = async (folder: string, nodes: readonly string[], announced: number) => {
    const udp = await bindSharedUdp(runtime.net, SILENT_LOG, { host: "127.0.0.1", port: 0 });
    const dht = await startDht({
      ...{ runtime, udp, log: SILENT_LOG, bootstrap: nodes, dataDir: scratch.file(folder) },
      ...{ port: () => announced, isImpliedPort: false, isReadOnly: false },
    });
    ends.push(async () => {
      await dht.close();
      udp.close();
    });
    return dht;
  };
  const near = await ours("near", [`127.0.0.1:${port}`], 7001);
  const far = await ours("far", [`127.0.0.1:${near.port}`], 7002);
  const close = async () => {
    for (const end of ends.reverse()) await end();
    await scratch.remove();
  };
  return { lt, port: Number(port), near, far, close };
}

function tell(lt: RunningProcess, order: object): void {
  lt.child.stdin!.write(`${JSON.stringify(order)}\n`);
}

/** Repeats the order to libtorrent until it prints an event of this kind that satisfies `fits`. */
async function ask<T>(
  lt: RunningProcess,
  order: object,
  event: string,
  fits: (said: T) => boolean,
): Promise<T> {
  for (let tries = 0; tries < 30; tries++) {
    tell(lt, order);
    const is = (line: string) => line.includes(`"event": "${event}"`) && fits(JSON.parse(line) as T);
    const line = await lt.line(is, 2_000).catch(() => undefined);
    if (line !== undefined) return JSON.parse(line) as T;
  }
  throw new Error(`libtorrent did not print ${event}:\n${lt.output()}`);
}

/** Repeats the request until it returns a result. */
async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 60; tries++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error("nothing was found in 30 s and more");
}

test("DHT with libtorrent: immutable and mutable items both ways (BEP 44)", {
  timeout: 150_000,
}, async () => {
  const { lt, near, far, close } = await three("dht-items");
  try {
    const value = text("11:of our make");
    const stop = near.publish(value);
    const target = toHex(runtime.sha1(value));
    type Item = { value: string };
    const got = await ask<Item>(lt, { do: "get", target }, "item", (item) => item.value === "of our make");
    assert.equal(got.value, "of our make");
    stop();

    tell(lt, { do: "put", value: "of its make" });
    const theirs = await until(() => far.get(runtime.sha1(text("11:of its make"))));
    assert.deepEqual(theirs, text("11:of its make"));

    const seed = new Uint8Array(32).fill(7);
    const { publicKey: key, sign } = runtime.ed25519Key(seed);
    const salt = text("live");
    const item = { key, salt, sequence: 3, value: text("2:v3") };
    const signature = sign(itemMessage(salt, item.sequence, item.value));
    far.publishMutable(() => ({ ...item, signature }));
    const order = { key: toHex(key), salt: "live" };
    type Mutable = { value: string; sequence: number };
    const read = await ask<Mutable>(
      lt,
      { do: "get-mutable", ...order },
      "mutable",
      ({ sequence }) => sequence === 3,
    );
    assert.equal(read.value, "v3");

    tell(lt, { do: "put-mutable", seed: toHex(seed), value: "v4", ...order });
    const newest = await until(async () => {
      const found = await near.getMutable(key, salt);
      return found && found.sequence > 3 ? found : undefined;
    });
    assert.deepEqual(newest, { sequence: 4, value: text("2:v4") });
  } finally {
    await close();
  }
});

test("DHT with libtorrent: peers both ways (BEP 5)", { timeout: 150_000 }, async () => {
  const { lt, port, near, far, close } = await three("dht-peers");
  try {
    const ours = toHex(runtime.sha1(text("our swarm"))) as Infohash;
    const leave = join(near, ours, true, () => {});
    type Peers = { peers: string[] };
    const has = ({ peers }: Peers) => peers.includes("127.0.0.1:7001");
    await ask<Peers>(lt, { do: "peers", infohash: ours }, "peers", has);
    leave();

    const theirs = toHex(runtime.sha1(text("its swarm"))) as Infohash;
    const found = new Set<number>();
    tell(lt, { do: "announce", infohash: theirs });
    const stop = join(far, theirs, false, (port) => found.add(port));
    await until(async () => {
      if (!found.has(port)) tell(lt, { do: "announce", infohash: theirs });
      return found.has(port) || undefined;
    });
    stop();
    assert.ok(near.figures().nodes4 > 0, JSON.stringify(near.figures()));
  } finally {
    await close();
  }
});

function join(dht: RunningDht, infohash: Infohash, announces: boolean, found: (port: number) => void) {
  return dht.join({
    infohash,
    announces,
    peers: () => 0,
    found: (addresses) => {
      for (const { port } of addresses) found(port);
    },
  });
}
