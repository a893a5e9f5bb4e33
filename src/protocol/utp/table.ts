import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { concatBytes, latin1Bytes, readU16 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Sha1 } from "../../base/ids.ts";
import type { Machine } from "../../base/machine.ts";
import { randomBelow } from "../../base/random.ts";
import { TokenBucket } from "../../base/rate.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import { decodeUtpPacket, encodeUtpPacket, type UtpHeader, type UtpPacket } from "../../wire/utp-packet.ts";
import { UtpConnection } from "./connection.ts";
import type { UtpId, UtpInput, UtpOutput, UtpSetup } from "./contract.ts";
import { Gather } from "./gather.ts";
import { ReceiveMemory } from "./inbox.ts";
import {
  LATE_WAKE_MS,
  MAX_ANSWERS_PER_SECOND,
  MAX_RESETS_PER_SECOND,
  MAX_UTP_CONNECTIONS,
  MAX_UTP_CONNECTIONS_PER_HOST,
  RECEIVE_WINDOW_BYTES,
} from "./limits.ts";
import { sequenceAfter } from "./sequence.ts";

/** Attempts to draw a free connection id of an address, of which there are 65,536. */
const MAX_ID_DRAWS = 8;
const LATE_WAKE_DELAY_MS = 2;
/** A connection is recognised if up to this many of its packets overtook the first one. */
const MAX_OVERTAKEN = 3;

/**
 * All uTP connections (BEP 29) of one UDP port: assigns datagrams to connections, accepts incoming connections, and has one
 * wake time for all. Packets caused by an input are emitted after its other outputs, so that data written in response to
 * received bytes carries their acknowledgement.
 */
export class UtpTable implements Machine<UtpInput, UtpOutput> {
  readonly #setup: UtpSetup;
  readonly #cookies: SynCookies;
  readonly #memory = new ReceiveMemory();
  readonly #byKey = new Map<string, UtpConnection>();
  readonly #byId = new Map<UtpId, UtpConnection>();
  readonly #perHost = new Map<string, number>();
  readonly #mayAnswer = new TokenBucket(MAX_ANSWERS_PER_SECOND, MAX_ANSWERS_PER_SECOND);
  readonly #mayReset = new TokenBucket(MAX_RESETS_PER_SECOND, MAX_RESETS_PER_SECOND);
  readonly #unsettled = new Set<UtpConnection>();
  readonly #gather = new Gather((output) => void this.#outputs.push(output));
  #outputs: UtpOutput[] = [];
  #taken = 0;
  /** The connection of the last packet: most packets come from the same one as the packet before. */
  #last: { readonly from: PeerAddress; readonly connection: UtpConnection } | undefined;
  #nextIncoming: UtpId = 1;
  #now: Instant;
  #wakeAt: Instant | undefined;
  #isWakePostponed = false;

  constructor(setup: UtpSetup, now: Instant) {
    this.#setup = setup;
    this.#cookies = new SynCookies(setup.sha1, setup.secret);
    this.#now = now;
  }

  /** Number of connections, including closing ones. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Returns the bytes written to a connection but not sent yet. */
  bufferedBytes(id: UtpId): number {
    return this.#byId.get(id)?.bufferedBytes ?? 0;
  }

  handle(input: UtpInput, now: Instant): void {
    this.#now = now;
    if (input.kind === "datagram") {
      this.#datagram(input.bytes, input.from);
      return;
    }
    if (input.kind === "connect") {
      this.#connect(input.id, input.address, input.timeoutMs);
      return;
    }
    const connection = this.#byId.get(input.id);
    if (!connection) return;
    this.#unsettled.add(connection);
    if (input.kind === "write") connection.write(input.bytes);
    else if (input.kind === "pause") connection.pause();
    else if (input.kind === "resume") connection.resume(now);
    else connection.close(now);
  }

  wake(now: Instant): void {
    this.#now = now;
    if (this.#wakeAt === undefined || now < this.#wakeAt) return;
    // After a late wake, timeouts are due whose answers may wait unread in the socket: those are read first.
    if (now - this.#wakeAt > LATE_WAKE_MS && !this.#isWakePostponed) {
      this.#isWakePostponed = true;
      this.#wakeAt = after(now, LATE_WAKE_DELAY_MS);
      return;
    }
    this.#isWakePostponed = false;
    this.#wakeAt = undefined;
    for (const connection of this.#byKey.values()) {
      const due = connection.nextWake();
      if (due !== undefined && due <= now) {
        connection.wake(now);
        this.#unsettled.add(connection);
      } else this.#wakeAt = earliest(this.#wakeAt, due);
    }
  }

  poll(): UtpOutput | undefined {
    for (;;) {
      this.#gather.flush();
      if (this.#taken < this.#outputs.length) return this.#outputs[this.#taken++];
      this.#gather.reset();
      if (this.#taken > 0) {
        this.#outputs = [];
        this.#taken = 0;
      }
      const [connection] = this.#unsettled;
      if (!connection) return undefined;
      this.#unsettled.delete(connection);
      this.#settle(connection);
    }
  }

  nextWake(): Instant | undefined {
    return this.#wakeAt;
  }

  #settle(connection: UtpConnection): void {
    connection.settle(this.#now);
    if (connection.isOver) this.#remove(connection);
    else this.#wakeAt = earliest(this.#wakeAt, connection.nextWake());
  }

  #datagram(bytes: Uint8Array, from: PeerAddress): void {
    const packet = readPacket(bytes);
    if (!packet) return;
    if (packet.kind === "syn") {
      this.#answerSyn(packet, from);
      return;
    }
    const connection =
      packet.kind === "reset"
        ? this.#resetOf(packet, from)
        : (this.#connectionOf(packet, from) ?? this.#accept(packet, from));
    if (!connection) return;
    if (this.#last?.connection !== connection || this.#last.from !== from) this.#last = { from, connection };
    connection.received(packet, this.#now);
    this.#unsettled.add(connection);
  }

  #connectionOf({ connectionId }: UtpPacket, from: PeerAddress): UtpConnection | undefined {
    const last = this.#last;
    if (last && last.from === from && last.connection.receiveId === connectionId) return last.connection;
    return this.#byKey.get(keyOf(from, connectionId));
  }

  /** Answers a SYN. A repeated SYN gets the same answer. */
  #answerSyn(packet: UtpPacket, from: PeerAddress): void {
    const { connectionId } = packet;
    if (!this.#setup.acceptsIncoming || this.#byKey.has(keyOf(from, (connectionId + 1) & 0xffff))) return;
    if (!this.#hasRoom(from.host) || !this.#mayAnswer.take(1, this.#now)) return;
    const sequence = this.#cookies.sequence(from, connectionId, packet.sequence);
    this.#reply("state", packet, sequence, from);
  }

  /** Accepts a connection whose packet carries a valid cookie; other packets are answered by a reset. */
  #accept(packet: UtpPacket, from: PeerAddress): UtpConnection | undefined {
    const synSequence =
      this.#setup.acceptsIncoming && packet.kind === "data"
        ? this.#cookies.synSequence(packet, from)
        : undefined;
    if (synSequence === undefined || !this.#hasRoom(from.host)) {
      if (this.#mayReset.take(1, this.#now))
        this.#reply("reset", packet, randomBelow(this.#setup.random, 65536), from);
      return undefined;
    }
    const { connectionId } = packet;
    const sendId = (connectionId - 1) & 0xffff;
    const id = this.#nextIncoming;
    this.#nextIncoming += 2;
    const numbers = {
      receiveId: connectionId,
      sendId,
      sequence: sequenceAfter(packet.ack),
      ack: synSequence,
    };
    const connection = this.#add(id, from, numbers);
    this.#outputs.push({ kind: "accepted", id, remote: from });
    return connection;
  }

  /** Returns the connection of a reset, which carries the id of either direction. */
  #resetOf({ connectionId }: UtpPacket, from: PeerAddress): UtpConnection | undefined {
    for (const receiveId of [connectionId, (connectionId - 1) & 0xffff, (connectionId + 1) & 0xffff]) {
      const connection = this.#byKey.get(keyOf(from, receiveId));
      if (connection && (connection.sendId === connectionId || receiveId === connectionId)) return connection;
    }
    return undefined;
  }

  #connect(id: UtpId, address: PeerAddress, timeoutMs: number): void {
    const receiveId = this.#hasRoom(address.host) ? this.#freeId(address) : undefined;
    if (receiveId === undefined) {
      this.#outputs.push({ kind: "closed", id, reason: "too many uTP connections" });
      return;
    }
    const sequence = randomBelow(this.#setup.random, 65536);
    const sendId = (receiveId + 1) & 0xffff;
    const connection = this.#add(id, address, { receiveId, sendId, sequence, timeoutMs });
    this.#unsettled.add(connection);
  }

  #add(
    id: UtpId,
    remote: PeerAddress,
    numbers: { receiveId: number; sendId: number; sequence: number; ack?: number; timeoutMs?: number },
  ): UtpConnection {
    const emit = (output: UtpOutput) => this.#emit(output);
    const connection = new UtpConnection({ id, remote, ...numbers, memory: this.#memory, emit }, this.#now);
    this.#byKey.set(keyOf(remote, connection.receiveId), connection);
    this.#byId.set(id, connection);
    this.#perHost.set(remote.host, (this.#perHost.get(remote.host) ?? 0) + 1);
    return connection;
  }

  #emit(output: UtpOutput): void {
    if (output.kind === "received") this.#gather.add(output.id, output.bytes);
    else {
      this.#gather.flush();
      this.#outputs.push(output);
    }
  }

  #remove({ id, remote, receiveId }: UtpConnection): void {
    this.#last = undefined;
    this.#byKey.delete(keyOf(remote, receiveId));
    this.#byId.delete(id);
    const count = (this.#perHost.get(remote.host) ?? 1) - 1;
    if (count > 0) this.#perHost.set(remote.host, count);
    else this.#perHost.delete(remote.host);
  }

  #hasRoom(host: string): boolean {
    if (this.#byKey.size >= MAX_UTP_CONNECTIONS) return false;
    return (this.#perHost.get(host) ?? 0) < MAX_UTP_CONNECTIONS_PER_HOST || addressScope(host) === "loopback";
  }

  #freeId(address: PeerAddress): number | undefined {
    for (let draw = 0; draw < MAX_ID_DRAWS; draw++) {
      const receiveId = randomBelow(this.#setup.random, 65536);
      if (!this.#byKey.has(keyOf(address, receiveId))) return receiveId;
    }
    return undefined;
  }

  /** Sends a packet outside any connection, in answer to `packet` and not longer than it. */
  #reply(kind: UtpHeader["kind"], packet: UtpPacket, sequence: number, to: PeerAddress): void {
    const timestampUs = Math.floor(this.#now * 1000) % 0x1_0000_0000;
    const bytes = encodeUtpPacket({
      ...{ kind, sequence, timestampUs, connectionId: packet.connectionId },
      delayUs: (timestampUs - packet.timestampUs) >>> 0,
      windowBytes: RECEIVE_WINDOW_BYTES,
      ack: packet.sequence,
    });
    this.#outputs.push({ kind: "send", bytes, to });
  }
}

/**
 * SYN cookies: the sequence number of the answer to a SYN is derived from its sender and a secret. A peer that returns it has
 * received the answer, so that SYN packets with forged addresses use no memory.
 */
class SynCookies {
  readonly #sha1: Sha1;
  readonly #secret: Uint8Array;

  constructor(sha1: Sha1, secret: Uint8Array) {
    this.#sha1 = sha1;
    this.#secret = secret;
  }

  /** Returns the sequence number of the answer to a SYN with this connection id and sequence number. */
  sequence(from: PeerAddress, connectionId: number, synSequence: number): number {
    const text = latin1Bytes(`${addressText(from)} ${connectionId} ${synSequence}`);
    return readU16(this.#sha1(concatBytes([this.#secret, text])), 0);
  }

  /** Returns the sequence number of the SYN that one of a connection's first packets belongs to; undefined if there
   * was none. */
  synSequence(packet: UtpPacket, from: PeerAddress): number | undefined {
    const connectionId = (packet.connectionId - 1) & 0xffff;
    for (let steps = 1; steps <= 1 + MAX_OVERTAKEN; steps++) {
      const syn = sequenceAfter(packet.sequence, -steps);
      const answer = this.sequence(from, connectionId, syn);
      // Common clients acknowledge the number before that of the answer, BEP 29 requires the answer itself.
      if (packet.ack === answer || packet.ack === sequenceAfter(answer, -1)) return syn;
    }
    return undefined;
  }
}

/** Returns undefined if the datagram is not a uTP packet. */
function readPacket(bytes: Uint8Array): UtpPacket | undefined {
  try {
    return decodeUtpPacket(bytes);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return undefined;
  }
}

function keyOf({ host, port }: PeerAddress, receiveId: number): string {
  return `${receiveId} ${port} ${host}`;
}
