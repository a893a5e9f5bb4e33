import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import { instant } from "../../../src/base/time.ts";
import type { UtpInput, UtpOutput } from "../../../src/protocol/utp/contract.ts";
import {
  MAX_ANSWERS_PER_SECOND,
  MAX_RESETS_PER_SECOND,
  MAX_UTP_CONNECTIONS_PER_HOST,
} from "../../../src/protocol/utp/limits.ts";
import { UtpTable } from "../../../src/protocol/utp/table.ts";
import {
  decodeUtpPacket,
  encodeUtpPacket,
  type UtpHeader,
  type UtpPacket,
} from "../../../src/wire/utp-packet.ts";
import { seededRandom } from "../../seeded-random.ts";

const PEER = { host: "9.9.9.9", port: 99 };
const HEADER = { timestampUs: 1, delayUs: 0, windowBytes: 1 << 20 };

/** A table that receives hand-written packets. */
class ManualTable {
  readonly table: UtpTable;
  now = instant(1_000);

  constructor(acceptsIncoming = true) {
    const sha1 = (bytes: Uint8Array) => createHash("sha1").update(bytes).digest();
    const secret = new Uint8Array(20).fill(5);
    this.table = new UtpTable({ random: seededRandom(1), sha1, secret, acceptsIncoming }, this.now);
  }

  input(input: UtpInput): UtpOutput[] {
    this.table.handle(input, this.now);
    return this.outputs();
  }

  outputs(): UtpOutput[] {
    const outputs: UtpOutput[] = [];
    for (let output = this.table.poll(); output; output = this.table.poll()) outputs.push(output);
    return outputs;
  }

  /** Sends a packet; returns the packets sent in answer, and the kinds of the other outputs. */
  packet(
    header: Pick<UtpHeader, "kind" | "connectionId" | "sequence" | "ack">,
    payload: readonly number[] = [],
    from: PeerAddress = PEER,
  ): { packets: UtpPacket[]; kinds: string[] } {
    const bytes = encodeUtpPacket({ ...HEADER, ...header }, { payloadBytes: payload.length });
    bytes.set(payload, bytes.length - payload.length);
    const outputs = this.input({ kind: "datagram", bytes, from });
    const packets = outputs.flatMap((output) =>
      output.kind === "send" ? [decodeUtpPacket(output.bytes)] : [],
    );
    return { packets, kinds: outputs.map(({ kind }) => kind).filter((kind) => kind !== "send") };
  }
}

test("UtpTable: SYN packets from many addresses use no memory, and get a limited number of short answers", () => {
  const { table, now } = new ManualTable();
  let sentBytes = 0;
  let came = 0;
  for (let i = 0; i < 20_000; i++) {
    const from = { host: `11.${i & 255}.${(i >> 8) & 255}.1`, port: 1 + (i % 60_000) };
    const bytes = encodeUtpPacket({ ...HEADER, kind: "syn", connectionId: i & 0xffff, sequence: 1, ack: 0 });
    came += bytes.length;
    table.handle({ kind: "datagram", bytes, from }, now);
    for (let output = table.poll(); output; output = table.poll()) {
      assert.equal(output.kind, "send");
      if (output.kind === "send") sentBytes += output.bytes.length;
    }
  }
  assert.equal(table.size, 0);
  assert.equal(sentBytes, MAX_ANSWERS_PER_SECOND * 20);
  assert.ok(sentBytes <= came);
  assert.equal(table.nextWake(), undefined);
});

test("UtpTable: accepts a connection with a valid cookie, even if its first packet was overtaken", () => {
  for (const [order, parts] of [
    [[0, 1], 2],
    [[1, 0], 1],
  ] as const) {
    const hand = new ManualTable();
    const [answer] = hand.packet({ kind: "syn", connectionId: 700, sequence: 40, ack: 0 }).packets;
    assert.deepEqual([answer?.kind, answer?.connectionId, answer?.ack], ["state", 700, 40]);
    const ack = (answer!.sequence - 1) & 0xffff;
    const kinds = order.map(
      (i) => hand.packet({ kind: "data", connectionId: 701, sequence: 41 + i, ack }, [i]).kinds,
    );
    assert.deepEqual(kinds.flat(), ["accepted", ...Array(parts).fill("received")]);
    assert.equal(hand.table.size, 1);
  }
});

test("UtpTable: packets with a wrong cookie or an unknown connection get a limited number of resets", () => {
  const hand = new ManualTable();
  let resets = 0;
  for (let i = 0; i < 500; i++) {
    const { packets, kinds } = hand.packet({ kind: "data", connectionId: 9, sequence: 2, ack: i }, [1]);
    assert.deepEqual(kinds, []);
    resets += packets.filter(({ kind }) => kind === "reset").length;
  }
  assert.equal(resets, MAX_RESETS_PER_SECOND);
  assert.equal(hand.table.size, 0);
});

test("UtpTable: answers no SYN if incoming connections are disabled", () => {
  const hand = new ManualTable(false);
  assert.deepEqual(hand.packet({ kind: "syn", connectionId: 1, sequence: 1, ack: 0 }).packets, []);
});

test("UtpTable: limits the connections of one host", () => {
  const hand = new ManualTable();
  let refused = 0;
  for (let id = 0; id < 200; id += 2) {
    const outputs = hand.input({
      kind: "connect",
      id,
      address: { host: PEER.host, port: 1 + id },
      timeoutMs: 1_000,
    });
    if (outputs.some(({ kind }) => kind === "closed")) refused++;
  }
  assert.equal(hand.table.size, MAX_UTP_CONNECTIONS_PER_HOST);
  assert.equal(refused, 100 - MAX_UTP_CONNECTIONS_PER_HOST);
  assert.deepEqual(hand.packet({ kind: "syn", connectionId: 1, sequence: 1, ack: 0 }).packets, []);
});

test("UtpTable: ignores resets and data that acknowledge packets never sent", () => {
  const hand = new ManualTable();
  const [first] = hand.input({ kind: "connect", id: 2, address: PEER, timeoutMs: 5_000 });
  assert.equal(first?.kind, "send");
  const call = decodeUtpPacket(first?.kind === "send" ? first.bytes : new Uint8Array(0));
  assert.equal(call.kind, "syn");
  const to = { connectionId: call.connectionId };
  const forged = (call.sequence + 5) & 0xffff;
  assert.deepEqual(hand.packet({ ...to, kind: "reset", sequence: 1, ack: forged }).kinds, []);
  assert.deepEqual(hand.packet({ ...to, kind: "state", sequence: 1, ack: forged }).kinds, []);
  assert.deepEqual(hand.packet({ ...to, kind: "state", sequence: 100, ack: call.sequence }).kinds, [
    "opened",
  ]);
  assert.deepEqual(hand.packet({ ...to, kind: "data", sequence: 100, ack: forged }, [1]).kinds, []);
  assert.deepEqual(hand.packet({ ...to, kind: "data", sequence: 100, ack: call.sequence }, [1]).kinds, [
    "received",
  ]);
  assert.deepEqual(hand.packet({ ...to, kind: "reset", sequence: 1, ack: call.sequence }).kinds, ["closed"]);
  assert.equal(hand.table.size, 0);
});

test("UtpTable: packets far ahead, many tiny packets and duplicates use limited memory, and get short answers", () => {
  const hand = new ManualTable();
  const [first] = hand.input({ kind: "connect", id: 2, address: PEER, timeoutMs: 5_000 });
  const call = decodeUtpPacket(first?.kind === "send" ? first.bytes : new Uint8Array(0));
  const to = { connectionId: call.connectionId, ack: call.sequence };
  hand.packet({ ...to, kind: "state", sequence: 0 });
  let sentBytes = 0;
  let windowBytes = 0;
  for (let round = 0; round < 2; round++) {
    for (let sequence = 1; sequence < 3_000; sequence++) {
      const { packets, kinds } = hand.packet({ ...to, kind: "data", sequence }, [1]);
      assert.deepEqual(kinds, []);
      for (const packet of packets) {
        sentBytes += 20 + (packet.selectiveAck?.length ?? 0);
        windowBytes = packet.windowBytes;
      }
    }
  }
  assert.ok(windowBytes < 2 * 1024 * 1024 - 1_900 * 128, "each packet that waits costs more than its byte");
  assert.ok(sentBytes < 6_000 * 120);
});

test("UtpTable: after a late wake, waiting datagrams are read before packets count as lost", () => {
  const hand = new ManualTable();
  hand.input({ kind: "connect", id: 2, address: PEER, timeoutMs: 5_000 });
  const due = hand.table.nextWake()!;
  hand.now = instant(due + 500);
  hand.table.wake(hand.now);
  assert.deepEqual(hand.outputs(), []);
  hand.now = instant(hand.table.nextWake()!);
  assert.ok(hand.now - due - 500 < 10);
  hand.table.wake(hand.now);
  assert.deepEqual(
    hand.outputs().map(({ kind }) => kind),
    ["send"],
  );
});

test("UtpTable: datagrams that arrive together are acknowledged once, and their bytes are joined", () => {
  const hand = new ManualTable();
  const [first] = hand.input({ kind: "connect", id: 2, address: PEER, timeoutMs: 5_000 });
  const call = decodeUtpPacket(first?.kind === "send" ? first.bytes : new Uint8Array(0));
  const to = { connectionId: call.connectionId, ack: call.sequence };
  hand.packet({ ...to, kind: "state", sequence: 1 });
  const buffer = new Uint8Array(21);
  for (let i = 0; i < 40; i++) {
    buffer.set(encodeUtpPacket({ ...HEADER, ...to, kind: "data", sequence: 1 + i }));
    buffer[20] = i;
    hand.table.handle({ kind: "datagram", bytes: buffer, from: PEER }, hand.now);
  }
  const outputs = hand.outputs();
  assert.deepEqual(
    outputs.map(({ kind }) => kind),
    ["received", "send"],
  );
  const [received] = outputs;
  assert.deepEqual(received?.kind === "received" && [...received.bytes], [...Array(40).keys()]);
});
