import { addressScope, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Machine } from "../../base/machine.ts";
import { randomBelow } from "../../base/random.ts";
import { TokenBucket } from "../../base/rate.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import { decodeUtpPacket, encodeUtpPacket, type UtpHeader, type UtpPacket } from "../../wire/utp-packet.ts";
import { Answers } from "./answers.ts";
import { UtpConnection } from "./connection.ts";
import type { UtpId, UtpInput, UtpOutput, UtpSetup } from "./contract.ts";
import { ReceiveMemory } from "./inbox.ts";
import {
  HELD_UP_MS,
  MAX_ANSWERS_PER_SECOND,
  MAX_RESETS_PER_SECOND,
  MAX_UTP_CONNECTIONS,
  MAX_UTP_CONNECTIONS_PER_HOST,
  RECEIVE_WINDOW_BYTES,
} from "./limits.ts";
import { sequenceAfter } from "./sequence.ts";

/** How often the first number of a connection is drawn before we say that there is none: 65,536 are for each address. */
const DRAWS = 8;
const HELD_UP_REST_MS = 2;

/**
 * All connections of uTP (BEP 29) over one UDP port: finds out whose a datagram is, lets others in, and keeps one time for
 * all of them to be woken at. What was made due by an input goes out when its other outputs have been taken: so what is
 * written in answer to bytes goes together with their acknowledgement.
 */
export class UtpTable implements Machine<UtpInput, UtpOutput> {
  readonly #setup: UtpSetup;
  readonly #answers: Answers;
  readonly #memory = new ReceiveMemory();
  readonly #byKey = new Map<string, UtpConnection>();
  readonly #byId = new Map<UtpId, UtpConnection>();
  readonly #perHost = new Map<string, number>();
  readonly #mayAnswer = new TokenBucket(MAX_ANSWERS_PER_SECOND, MAX_ANSWERS_PER_SECOND);
  readonly #mayReset = new TokenBucket(MAX_RESETS_PER_SECOND, MAX_RESETS_PER_SECOND);
  readonly #unsettled = new Set<UtpConnection>();
  #outputs: UtpOutput[] = [];
  #taken = 0;
  #nextIncoming: UtpId = 1;
  #now: Instant;
  #wakeAt: Instant | undefined;
  #isHeldUp = false;

  constructor(setup: UtpSetup, now: Instant) {
    this.#setup = setup;
    this.#answers = new Answers(setup.sha1, setup.secret);
    this.#now = now;
  }

  /** Connections there are, those included that are being closed. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Bytes written to a connection and not sent yet. */
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
    // Whoever was held up finds time-outs due, and their answers unread in the socket: those go first.
    if (now - this.#wakeAt > HELD_UP_MS && !this.#isHeldUp) {
      this.#isHeldUp = true;
      this.#wakeAt = after(now, HELD_UP_REST_MS);
      return;
    }
    this.#isHeldUp = false;
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
      if (this.#taken < this.#outputs.length) return this.#outputs[this.#taken++];
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
      this.#answer(packet, from);
      return;
    }
    const connection =
      packet.kind === "reset"
        ? this.#resetOf(packet, from)
        : (this.#byKey.get(keyOf(from, packet.connectionId)) ?? this.#accept(packet, from));
    if (!connection) return;
    connection.received(packet, this.#now);
    this.#unsettled.add(connection);
  }

  /** Somebody calls. Who called before and did not hear us gets the same answer. */
  #answer(packet: UtpPacket, from: PeerAddress): void {
    const { connectionId } = packet;
    if (!this.#setup.answers || this.#byKey.has(keyOf(from, (connectionId + 1) & 0xffff))) return;
    if (!this.#hasRoom(from.host) || !this.#mayAnswer.take(1, this.#now)) return;
    const sequence = this.#answers.sequence(from, connectionId, packet.sequence);
    this.#tell("state", packet, sequence, from);
  }

  /** Lets somebody in who comes with the answer to a call; anybody else is told that there is no such connection. */
  #accept(packet: UtpPacket, from: PeerAddress): UtpConnection | undefined {
    const call =
      this.#setup.answers && packet.kind === "data" ? this.#answers.callOf(packet, from) : undefined;
    if (call === undefined || !this.#hasRoom(from.host)) {
      if (this.#mayReset.take(1, this.#now))
        this.#tell("reset", packet, randomBelow(this.#setup.random, 65536), from);
      return undefined;
    }
    const { connectionId } = packet;
    const sendId = (connectionId - 1) & 0xffff;
    const id = this.#nextIncoming;
    this.#nextIncoming += 2;
    const numbers = { receiveId: connectionId, sendId, sequence: sequenceAfter(packet.ack), ack: call };
    const connection = this.#add(id, from, numbers);
    this.#outputs.push({ kind: "accepted", id, remote: from });
    return connection;
  }

  /** Whose a reset is: it carries the number that our packets carry, or the one that theirs do. */
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
      this.#outputs.push({ kind: "closed", id, reason: "too many connections over uTP" });
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
    const emit = (output: UtpOutput) => void this.#outputs.push(output);
    const connection = new UtpConnection({ id, remote, ...numbers, memory: this.#memory, emit }, this.#now);
    this.#byKey.set(keyOf(remote, connection.receiveId), connection);
    this.#byId.set(id, connection);
    this.#perHost.set(remote.host, (this.#perHost.get(remote.host) ?? 0) + 1);
    return connection;
  }

  #remove({ id, remote, receiveId }: UtpConnection): void {
    this.#byKey.delete(keyOf(remote, receiveId));
    this.#byId.delete(id);
    const left = (this.#perHost.get(remote.host) ?? 1) - 1;
    if (left > 0) this.#perHost.set(remote.host, left);
    else this.#perHost.delete(remote.host);
  }

  #hasRoom(host: string): boolean {
    if (this.#byKey.size >= MAX_UTP_CONNECTIONS) return false;
    return (this.#perHost.get(host) ?? 0) < MAX_UTP_CONNECTIONS_PER_HOST || addressScope(host) === "loopback";
  }

  #freeId(address: PeerAddress): number | undefined {
    for (let draw = 0; draw < DRAWS; draw++) {
      const receiveId = randomBelow(this.#setup.random, 65536);
      if (!this.#byKey.has(keyOf(address, receiveId))) return receiveId;
    }
    return undefined;
  }

  /** Says something outside any connection, in answer to a packet and no longer than it. */
  #tell(kind: UtpHeader["kind"], packet: UtpPacket, sequence: number, to: PeerAddress): void {
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

/** Undefined for what is no packet at all. */
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
