import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import { latin1Bytes } from "../../src/base/bytes.ts";
import type { SwarmOutput, SwarmSetup } from "../../src/swarm/contract.ts";
import { decodeExtensionHandshake, encodeExtensionHandshake } from "../../src/wire/extension-handshake.ts";
import { encodeHandshake, HANDSHAKE_BYTES } from "../../src/wire/handshake.ts";
import {
  decodeHolepunchMessage,
  encodeHolepunchMessage,
  type HolepunchMessage,
} from "../../src/wire/holepunch-message.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../src/wire/peer-message.ts";
import { PeerMessageWriter } from "../../src/wire/peer-message-writer.ts";
import { encodePexMessage, PEX_HOLEPUNCH } from "../../src/wire/pex-message.ts";
import { makeContent, ScriptedSwarm } from "./scripted.ts";

/** The numbers that these peers want to be spoken to by. */
const [PEX, PUNCH] = [7, 9];
/** And those of ours. */
const [OUR_PEX, OUR_PUNCH] = [2, 3];
const TARGET = { host: "93.184.216.34", port: 6881 };
const CONTENT = makeContent(2, 1);

/** A peer of the Internet that calls us, and speaks the extension protocol. */
class Caller {
  readonly heard: HolepunchMessage[] = [];
  hello: ReadonlyMap<string, number> | undefined;
  readonly #swarm: ScriptedSwarm;
  readonly #connection: number;
  #seen = 0;

  constructor(
    swarm: ScriptedSwarm,
    connection: number,
    address: PeerAddress,
    listenPort: number,
    punches = true,
  ) {
    this.#swarm = swarm;
    this.#connection = connection;
    swarm.input({ kind: "accepted", connection, address });
    const peerId = latin1Bytes(`-XX0000-${String(connection).padStart(12, "0")}`);
    const flags = { extensions: true, fast: false, dht: false };
    this.#say(encodeHandshake({ infohash: swarm.infohash, peerId, ...flags }));
    const messages = new Map([["ut_pex", PEX], ...(punches ? ([["ut_holepunch", PUNCH]] as const) : [])]);
    this.extended(0, encodeExtensionHandshake({ messages, listenPort }));
  }

  extended(id: number, payload: Uint8Array): void {
    const writer = new PeerMessageWriter();
    writer.extended(id, payload);
    this.#say(writer.take()!);
  }

  punch(kind: HolepunchMessage["kind"], address: PeerAddress): void {
    this.extended(OUR_PUNCH, encodeHolepunchMessage({ kind, address, error: 0 }));
  }

  /** What it was told since it was last asked. */
  news(): HolepunchMessage[] {
    const decoder = new PeerMessageDecoder(this.#listener(), {
      maxBitfieldBytes: 1_000,
      maxExtendedBytes: 100_000,
      maxBlockBytes: 16 * 1024,
    });
    const sent = this.#swarm.outputs.filter((output) => isSendTo(output, this.#connection));
    let skip = HANDSHAKE_BYTES;
    this.heard.length = 0;
    for (const { bytes } of sent) {
      decoder.feed(bytes.subarray(Math.min(skip, bytes.length)));
      skip -= Math.min(skip, bytes.length);
    }
    const news = this.heard.slice(this.#seen);
    this.#seen = this.heard.length;
    return news;
  }

  #say(bytes: Uint8Array): void {
    this.#swarm.input({ kind: "received", connection: this.#connection, bytes });
  }

  #listener(): PeerMessageHandler {
    const extended = (id: number, payload: Uint8Array) => {
      if (id === PUNCH) this.heard.push(decodeHolepunchMessage(payload)!);
      if (id === 0) this.hello = decodeExtensionHandshake(payload).messages;
    };
    const ignore = () => {};
    return new Proxy({ extended } as unknown as PeerMessageHandler, {
      get: (target, name) => (name === "extended" ? target.extended : ignore),
    });
  }
}

function isSendTo(output: SwarmOutput, connection: number): output is Extract<SwarmOutput, { kind: "send" }> {
  return output.kind === "send" && output.connection === connection;
}

function swarmThat(options: Partial<SwarmSetup> = {}): ScriptedSwarm {
  const swarm = new ScriptedSwarm(CONTENT, { punches: true, ...options } as never);
  swarm.want(0, CONTENT.layout.length);
  return swarm;
}

function calls(swarm: ScriptedSwarm) {
  return swarm.outputs.filter((output) => output.kind === "connect");
}

const ASKER = { host: "8.8.8.8", port: 50_001 };
const OTHER = { host: "9.9.9.9", port: 50_002 };

test("HolePunch: who could not be called is asked for at who told of it, and called over uTP when told so", () => {
  const swarm = swarmThat();
  const relay = new Caller(swarm, 1, ASKER, 1_000);
  relay.extended(
    OUR_PEX,
    encodePexMessage({ added: [{ address: TARGET, flags: PEX_HOLEPUNCH }], dropped: [] }),
  );
  const [call] = calls(swarm);
  assert.deepEqual(call?.address, TARGET);
  assert.deepEqual(relay.news(), []);
  swarm.input({ kind: "closed", connection: call!.connection, reason: "no answer" });
  swarm.pass(1);
  assert.deepEqual(relay.news(), [{ kind: "rendezvous", address: TARGET, error: 0 }]);
  relay.punch("connect", TARGET);
  const [, punch] = calls(swarm);
  assert.deepEqual([punch?.address, punch?.isPunch], [TARGET, true]);
  swarm.input({ kind: "closed", connection: punch!.connection, reason: "no answer" });
  swarm.pass(60_000);
  assert.deepEqual(relay.news(), [], "nobody is asked for the same twice within minutes");
});

test("HolePunch: who was not said to know it is not asked for", () => {
  const swarm = swarmThat();
  const relay = new Caller(swarm, 1, ASKER, 1_000);
  relay.extended(OUR_PEX, encodePexMessage({ added: [{ address: TARGET, flags: 0 }], dropped: [] }));
  swarm.input({ kind: "closed", connection: calls(swarm)[0]!.connection, reason: "no answer" });
  swarm.pass(1);
  assert.deepEqual(relay.news(), []);
});

test("HolePunch: two peers of ours are told of each other, where each may be met", () => {
  const swarm = swarmThat();
  const asker = new Caller(swarm, 1, ASKER, ASKER.port);
  const other = new Caller(swarm, 3, OTHER, 2_000);
  asker.punch("rendezvous", { host: OTHER.host, port: 2_000 });
  const connect = (address: PeerAddress) => ({ kind: "connect", address, error: 0 });
  assert.deepEqual(other.news(), [connect(ASKER)]);
  assert.deepEqual(asker.news(), [connect(OTHER), connect({ host: OTHER.host, port: 2_000 })]);
});

test("HolePunch: what cannot be is answered with BEP 55's number for it", () => {
  const swarm = swarmThat();
  const asker = new Caller(swarm, 1, ASKER, ASKER.port);
  new Caller(swarm, 3, OTHER, OTHER.port, false);
  new Caller(swarm, 5, { host: "192.168.1.7", port: 6_000 }, 6_000);
  const wanted = [ASKER, TARGET, OTHER, { host: "192.168.1.7", port: 6_000 }];
  for (const address of wanted) asker.punch("rendezvous", address);
  assert.deepEqual(
    asker.news().map(({ kind, error }) => [kind, error]),
    [
      ["error", 1],
      ["error", 2],
      ["error", 3],
      ["error", 2],
    ],
  );
});

test("HolePunch: a peer that asks again and again is no longer heard, and makes nobody call the world", () => {
  const swarm = swarmThat();
  const asker = new Caller(swarm, 1, ASKER, ASKER.port);
  const other = new Caller(swarm, 3, OTHER, OTHER.port);
  for (let i = 0; i < 100; i++) asker.punch("rendezvous", OTHER);
  assert.equal(other.news().length, 10);
  const before = calls(swarm).length;
  for (let i = 0; i < 100; i++) other.punch("connect", { host: `11.0.${i}.1`, port: 1 });
  assert.ok(calls(swarm).length - before <= 10);
});

test("HolePunch: nobody outside points us at addresses inside", () => {
  const swarm = swarmThat();
  const relay = new Caller(swarm, 1, ASKER, ASKER.port);
  relay.punch("connect", { host: "192.168.1.1", port: 80 });
  relay.punch("connect", { host: "127.0.0.1", port: 80 });
  assert.deepEqual(calls(swarm), []);
});

test("HolePunch: neither told of nor done for private content, nor without uTP", () => {
  const layout = { ...CONTENT.layout, isPrivate: true };
  const info = { layout, infoBytes: Uint8Array.of(100, 101) };
  for (const options of [{ info }, { punches: false }]) {
    const swarm = swarmThat(options);
    const asker = new Caller(swarm, 1, ASKER, ASKER.port);
    const other = new Caller(swarm, 3, OTHER, OTHER.port);
    asker.punch("rendezvous", OTHER);
    asker.punch("connect", TARGET);
    assert.deepEqual([asker.news(), other.news(), calls(swarm)], [[], [], []]);
    assert.equal(asker.hello?.has("ut_holepunch"), false);
  }
});
