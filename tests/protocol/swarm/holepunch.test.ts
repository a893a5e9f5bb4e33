import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import type { SwarmOutput, SwarmSetup } from "../../../src/protocol/swarm/contract.ts";
import {
  decodeExtensionHandshake,
  encodeExtensionHandshake,
} from "../../../src/wire/peer/extension-handshake.ts";
import { encodeHandshake, HANDSHAKE_BYTES } from "../../../src/wire/peer/handshake.ts";
import { decodeHolepunchMessage, encodeHolepunchMessage } from "../../../src/wire/peer/holepunch-message.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../../src/wire/peer/peer-message-writer.ts";
import { encodePexMessage, PEX_HOLEPUNCH } from "../../../src/wire/peer/pex-message.ts";
import { makeContent, ScriptedSwarm } from "./scripted.ts";

/** The message ids that these peers use. */
const [PEX, PUNCH] = [7, 9];
/** The message ids of the swarm. */
const [OUR_PEX, OUR_PUNCH] = [2, 3];
const TARGET = { host: "93.184.216.34", port: 6881 };
const CONTENT = makeContent(2, 1);

type HolepunchMessage = NonNullable<ReturnType<typeof decodeHolepunchMessage>>;

/** A peer of the Internet that connects to the swarm and supports the extension protocol. */
class RemotePeer {
  readonly received: HolepunchMessage[] = [];
  handshake: ReadonlyMap<string, number> | undefined;
  readonly #swarm: ScriptedSwarm;
  readonly #connection: number;
  #seen = 0;

  constructor(
    swarm: ScriptedSwarm,
    connection: number,
    address: PeerAddress,
    listenPort: number,
    allowsHolePunching = true,
  ) {
    this.#swarm = swarm;
    this.#connection = connection;
    swarm.input({ kind: "accepted", connection, address });
    const peerId = latin1Bytes(`-XX0000-${String(connection).padStart(12, "0")}`);
    const flags = { extensions: true, fast: false, dht: false };
    this.#send(encodeHandshake({ infohash: swarm.infohash, peerId, ...flags }));
    const messages = new Map([
      ["ut_pex", PEX],
      ...(allowsHolePunching ? ([["ut_holepunch", PUNCH]] as const) : []),
    ]);
    this.extended(0, encodeExtensionHandshake({ messages, listenPort }));
  }

  extended(id: number, payload: Uint8Array): void {
    const writer = new PeerMessageWriter();
    writer.extended(id, payload);
    this.#send(writer.take()!);
  }

  punch(kind: HolepunchMessage["kind"], address: PeerAddress): void {
    this.extended(OUR_PUNCH, encodeHolepunchMessage({ kind, address, error: 0 }));
  }

  /** The holepunch messages it received since the last call. */
  messages(): HolepunchMessage[] {
    const decoder = new PeerMessageDecoder(this.#handler(), {
      maxBitfieldBytes: 1_000,
      maxExtendedBytes: 100_000,
      maxBlockBytes: 16 * 1024,
    });
    const sent = this.#swarm.outputs.filter((output) => isSendTo(output, this.#connection));
    let skip = HANDSHAKE_BYTES;
    this.received.length = 0;
    for (const { bytes } of sent) {
      decoder.feed(bytes.subarray(Math.min(skip, bytes.length)));
      skip -= Math.min(skip, bytes.length);
    }
    const messages = this.received.slice(this.#seen);
    this.#seen = this.received.length;
    return messages;
  }

  #send(bytes: Uint8Array): void {
    this.#swarm.input({ kind: "received", connection: this.#connection, bytes });
  }

  #handler(): PeerMessageHandler {
    const extended = (id: number, payload: Uint8Array) => {
      if (id === PUNCH) this.received.push(decodeHolepunchMessage(payload)!);
      if (id === 0) this.handshake = decodeExtensionHandshake(payload).messages;
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

function swarmWith(options: Partial<SwarmSetup> = {}): ScriptedSwarm {
  const swarm = new ScriptedSwarm(CONTENT, { allowsHolePunching: true, ...options } as never);
  swarm.want(0, CONTENT.layout.length);
  return swarm;
}

function connects(swarm: ScriptedSwarm) {
  return swarm.outputs.filter((output) => output.kind === "connect");
}

const REQUESTER = { host: "8.8.8.8", port: 50_001 };
const OTHER = { host: "9.9.9.9", port: 50_002 };

test("HolePunch: an unreachable peer is requested from the peer that reported it, and connected to over uTP", () => {
  const swarm = swarmWith();
  const relay = new RemotePeer(swarm, 1, REQUESTER, 1_000);
  relay.extended(
    OUR_PEX,
    encodePexMessage({ added: [{ address: TARGET, flags: PEX_HOLEPUNCH }], dropped: [] }),
  );
  const [call] = connects(swarm);
  assert.deepEqual(call?.address, TARGET);
  assert.deepEqual(relay.messages(), []);
  swarm.input({ kind: "closed", connection: call!.connection, reason: "no answer" });
  swarm.pass(1);
  assert.deepEqual(relay.messages(), [{ kind: "rendezvous", address: TARGET, error: 0 }]);
  relay.punch("connect", TARGET);
  const [, punch] = connects(swarm);
  assert.deepEqual([punch?.address, punch?.isPunch], [TARGET, true]);
  swarm.input({ kind: "closed", connection: punch!.connection, reason: "no answer" });
  swarm.pass(60_000);
  assert.deepEqual(relay.messages(), [], "the same address is not requested again within minutes");
});

test("HolePunch: a peer reported without holepunch support is not requested", () => {
  const swarm = swarmWith();
  const relay = new RemotePeer(swarm, 1, REQUESTER, 1_000);
  relay.extended(OUR_PEX, encodePexMessage({ added: [{ address: TARGET, flags: 0 }], dropped: [] }));
  swarm.input({ kind: "closed", connection: connects(swarm)[0]!.connection, reason: "no answer" });
  swarm.pass(1);
  assert.deepEqual(relay.messages(), []);
});

test("HolePunch: relays the addresses of two connected peers to each other", () => {
  const swarm = swarmWith();
  const requester = new RemotePeer(swarm, 1, REQUESTER, REQUESTER.port);
  const other = new RemotePeer(swarm, 3, OTHER, 2_000);
  requester.punch("rendezvous", { host: OTHER.host, port: 2_000 });
  const connect = (address: PeerAddress) => ({ kind: "connect", address, error: 0 });
  assert.deepEqual(other.messages(), [connect(REQUESTER)]);
  assert.deepEqual(requester.messages(), [connect(OTHER), connect({ host: OTHER.host, port: 2_000 })]);
});

test("HolePunch: answers impossible requests with the error codes of BEP 55", () => {
  const swarm = swarmWith();
  const requester = new RemotePeer(swarm, 1, REQUESTER, REQUESTER.port);
  new RemotePeer(swarm, 3, OTHER, OTHER.port, false);
  new RemotePeer(swarm, 5, { host: "192.168.1.7", port: 6_000 }, 6_000);
  const wanted = [REQUESTER, TARGET, OTHER, { host: "192.168.1.7", port: 6_000 }];
  for (const address of wanted) requester.punch("rendezvous", address);
  assert.deepEqual(
    requester.messages().map(({ kind, error }) => [kind, error]),
    [
      ["error", 1],
      ["error", 2],
      ["error", 3],
      ["error", 2],
    ],
  );
});

test("HolePunch: messages of a peer above the rate limit are ignored", () => {
  const swarm = swarmWith();
  const requester = new RemotePeer(swarm, 1, REQUESTER, REQUESTER.port);
  const other = new RemotePeer(swarm, 3, OTHER, OTHER.port);
  for (let i = 0; i < 100; i++) requester.punch("rendezvous", OTHER);
  assert.equal(other.messages().length, 10);
  const before = connects(swarm).length;
  for (let i = 0; i < 100; i++) other.punch("connect", { host: `11.0.${i}.1`, port: 1 });
  assert.ok(connects(swarm).length - before <= 10);
});

test("HolePunch: peers outside the local network cannot cause connections inside it", () => {
  const swarm = swarmWith();
  const relay = new RemotePeer(swarm, 1, REQUESTER, REQUESTER.port);
  relay.punch("connect", { host: "192.168.1.1", port: 80 });
  relay.punch("connect", { host: "127.0.0.1", port: 80 });
  assert.deepEqual(connects(swarm), []);
});

test("HolePunch: disabled for private content, and without uTP", () => {
  const layout = { ...CONTENT.layout, isPrivate: true };
  const info = { layout, infoBytes: Uint8Array.of(100, 101) };
  for (const options of [{ info }, { allowsHolePunching: false }]) {
    const swarm = swarmWith(options);
    const requester = new RemotePeer(swarm, 1, REQUESTER, REQUESTER.port);
    const other = new RemotePeer(swarm, 3, OTHER, OTHER.port);
    requester.punch("rendezvous", OTHER);
    requester.punch("connect", TARGET);
    assert.deepEqual([requester.messages(), other.messages(), connects(swarm)], [[], [], []]);
    assert.equal(requester.handshake?.has("ut_holepunch"), false);
  }
});
