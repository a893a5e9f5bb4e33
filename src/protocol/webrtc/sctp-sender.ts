import { writeU16, writeU32 } from "../../base/bytes.ts";
import { after, type Instant } from "../../base/time.ts";
import { DATA_FLAG, DATA_HEADER_BYTES, type SackChunk, tsnAfter, tsnDistance } from "./sctp-packet.ts";

/** A packet fits into 1,200 bytes of UDP data with DTLS (37) and the SCTP header, as RFC 8831 5 recommends. */
const MAX_DATA_BYTES = 1_132;
const PACKET_BYTES = 1_160;
/** Chunks of a message are delivered together, so that the receiver has fewer events. Every implementation accepts this size. */
const MAX_MESSAGE_BYTES = 16_384;
const INITIAL_WINDOW_BYTES = 10 * PACKET_BYTES;
const MIN_THRESHOLD_BYTES = 4 * PACKET_BYTES;
/** Limits the memory of one connection: 100 Mbit/s at 80 ms. */
const MAX_WINDOW_BYTES = 1024 * 1024;
/** Limits the chunks that are kept: a peer that acknowledges all but the first one would let them grow. */
const MAX_SENT = 2_048;
/** Packets of one turn: more would overflow the receive buffer of the peer's system. */
const MAX_BURST = 64;
const INITIAL_RTO_MS = 1_000;
const MIN_RTO_MS = 300;
const MAX_RTO_MS = 10_000;
/** Consecutive timeouts until the connection is given up. */
const MAX_TIMEOUTS = 8;
const MISSES_UNTIL_LOST = 3;
/** Payload protocol identifiers (RFC 8831 8). */
export const PAYLOAD = { control: 50, text: 51, binary: 53, emptyText: 56, emptyBinary: 57 } as const;

interface Sent {
  /** The value of the DATA chunk. */
  readonly chunk: Uint8Array;
  readonly flags: number;
  sentAt: Instant;
  sends: number;
  isAcked: boolean;
  isLost: boolean;
  misses: number;
}

/** A DATA chunk to send. */
export interface OutgoingData {
  readonly flags: number;
  readonly value: Uint8Array;
}

/** The sending half of an association: one ordered, reliable stream with the congestion control of RFC 9260 7. */
export class SctpSender {
  readonly #queue: Uint8Array[] = [];
  /** Bytes of the first queued buffer that were taken already. */
  #taken = 0;
  #queuedBytes = 0;
  readonly #control: Uint8Array[] = [];
  /** Sent and not yet acknowledged cumulatively; the first has the TSN `#firstTsn`. */
  #sent: Sent[] = [];
  #firstTsn: number;
  #streamId = 0;
  #streamSequence = 0;
  #messageLeft = 0;
  #flightBytes = 0;
  #windowBytes = INITIAL_WINDOW_BYTES;
  #thresholdBytes = Number.POSITIVE_INFINITY;
  #peerWindowBytes = 0;
  #partialBytes = 0;
  /** Ends the fast recovery when it is acknowledged. */
  #recoveryTsn: number | undefined;
  #rtoMs = INITIAL_RTO_MS;
  #smoothedMs: number | undefined;
  #variationMs = 0;
  #timeouts = 0;
  #timeoutAt: Instant | undefined;
  #hasLost = false;

  constructor(firstTsn: number) {
    this.#firstTsn = firstTsn;
  }

  /** Bytes that were never sent. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  get timeoutAt(): Instant | undefined {
    return this.#timeoutAt;
  }

  set streamId(id: number) {
    this.#streamId = id;
  }

  /** The window of the peer, from its INIT. */
  set peerWindowBytes(bytes: number) {
    this.#peerWindowBytes = bytes;
  }

  write(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
  }

  /** Queues a message of the channel protocol, which precedes all data. */
  control(message: Uint8Array): void {
    this.#control.push(message);
  }

  /** Yields the chunks that may be sent now. */
  *take(now: Instant): Generator<OutgoingData> {
    let burst = MAX_BURST;
    if (this.#hasLost) {
      this.#hasLost = false;
      for (const sent of this.#sent) {
        if (!sent.isLost) continue;
        if (burst === 0 || (this.#flightBytes > 0 && this.#flightBytes >= this.#windowBytes)) {
          this.#hasLost = true;
          break;
        }
        sent.isLost = false;
        sent.misses = 0;
        sent.sends++;
        burst--;
        this.#flightBytes += sent.chunk.length - DATA_OVERHEAD;
        this.#timeoutAt ??= after(now, this.#rtoMs);
        yield { flags: sent.flags, value: sent.chunk };
      }
    }
    while (burst-- > 0 && this.#maySend()) {
      const sent = this.#next(now);
      if (!sent) return;
      this.#sent.push(sent);
      this.#flightBytes += sent.chunk.length - DATA_OVERHEAD;
      this.#timeoutAt ??= after(now, this.#rtoMs);
      yield { flags: sent.flags, value: sent.chunk };
    }
  }

  /** Handles an acknowledgement. Returns false if it acknowledges what was never sent. */
  acknowledged({ cumulativeTsn, windowBytes, gaps }: SackChunk, now: Instant): boolean {
    const count = tsnDistance(cumulativeTsn, this.#firstTsn) + 1;
    if (count > this.#sent.length) return false;
    if (count < 0) return true;
    const wasFull = this.#flightBytes + PACKET_BYTES > this.#windowBytes;
    let ackedBytes = 0;
    const ack = (sent: Sent) => {
      if (sent.isAcked) return;
      sent.isAcked = true;
      const bytes = sent.chunk.length - DATA_OVERHEAD;
      ackedBytes += bytes;
      if (!sent.isLost) this.#flightBytes -= bytes;
      sent.isLost = false;
    };
    const newest = this.#sent[count - 1];
    // Karn's algorithm: a repeated chunk gives no measurement.
    if (newest && newest.sends === 1 && !newest.isAcked) this.#measured(now - newest.sentAt);
    for (const sent of this.#sent.splice(0, count)) ack(sent);
    this.#firstTsn = tsnAfter(this.#firstTsn, count);
    let highest = -1;
    for (const [first, last] of gaps) {
      for (let i = Math.max(0, first - 1); i <= last - 1 && i < this.#sent.length; i++) {
        if (!this.#sent[i]!.isAcked) highest = Math.max(highest, i);
        ack(this.#sent[i]!);
      }
    }
    this.#peerWindowBytes = Math.max(0, windowBytes - this.#flightBytes);
    this.#missed(highest);
    // A peer whose window is closed answers each probe (RFC 9260 6.1).
    if (ackedBytes > 0 || windowBytes < MAX_DATA_BYTES) this.#timeouts = 0;
    if (this.#recoveryTsn !== undefined && tsnDistance(cumulativeTsn, this.#recoveryTsn) >= 0)
      this.#recoveryTsn = undefined;
    if (this.#recoveryTsn === undefined && wasFull && count > 0) this.#grow(ackedBytes);
    if (this.#sent.length === 0) this.#timeoutAt = undefined;
    else if (count > 0) this.#timeoutAt = after(now, this.#rtoMs);
    return true;
  }

  /** Handles a due timeout: everything is sent again. Returns false if the peer is gone. */
  timedOut(now: Instant): boolean {
    if (this.#timeoutAt === undefined || now < this.#timeoutAt) return true;
    this.#timeoutAt = undefined;
    if (++this.#timeouts > MAX_TIMEOUTS) return false;
    this.#thresholdBytes = Math.max(this.#windowBytes / 2, MIN_THRESHOLD_BYTES);
    this.#windowBytes = PACKET_BYTES;
    this.#recoveryTsn = undefined;
    this.#rtoMs = Math.min(2 * this.#rtoMs, MAX_RTO_MS);
    for (const sent of this.#sent) if (!sent.isAcked) this.#lose(sent);
    return true;
  }

  /** A closed window is probed with one chunk (RFC 9260 6.1 A). */
  #maySend(): boolean {
    if (this.#sent.length >= MAX_SENT) return false;
    if (this.#flightBytes === 0) return true;
    return this.#flightBytes < this.#windowBytes && this.#peerWindowBytes >= MAX_DATA_BYTES;
  }

  #next(now: Instant): Sent | undefined {
    const control = this.#control.shift();
    if (control) return this.#sending(control, PAYLOAD.control, DATA_FLAG.begin | DATA_FLAG.end, now);
    if (this.#queuedBytes === 0) return undefined;
    const begin = this.#messageLeft === 0 ? DATA_FLAG.begin : 0;
    if (begin) this.#messageLeft = Math.min(this.#queuedBytes, MAX_MESSAGE_BYTES);
    const data = this.#dequeue(Math.min(this.#messageLeft, MAX_DATA_BYTES));
    this.#messageLeft -= data.length;
    return this.#sending(data, PAYLOAD.binary, begin | (this.#messageLeft === 0 ? DATA_FLAG.end : 0), now);
  }

  #sending(data: Uint8Array, payload: number, flags: number, now: Instant): Sent {
    const chunk = new Uint8Array(DATA_OVERHEAD + data.length);
    writeU32(chunk, 0, tsnAfter(this.#firstTsn, this.#sent.length));
    writeU16(chunk, 4, this.#streamId);
    writeU16(chunk, 6, this.#streamSequence);
    writeU32(chunk, 8, payload);
    chunk.set(data, DATA_OVERHEAD);
    if (flags & DATA_FLAG.end) this.#streamSequence = (this.#streamSequence + 1) & 0xffff;
    this.#peerWindowBytes = Math.max(0, this.#peerWindowBytes - data.length);
    return { chunk, flags, sentAt: now, sends: 1, isAcked: false, isLost: false, misses: 0 };
  }

  #dequeue(length: number): Uint8Array {
    this.#queuedBytes -= length;
    const first = this.#queue[0]!;
    if (first.length - this.#taken > length) {
      this.#taken += length;
      return first.subarray(this.#taken - length, this.#taken);
    }
    const data = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const buffer = this.#queue[0]!;
      const part = buffer.subarray(this.#taken, this.#taken + length - at);
      data.set(part, at);
      at += part.length;
      this.#taken += part.length;
      if (this.#taken < buffer.length) continue;
      this.#queue.shift();
      this.#taken = 0;
    }
    return data;
  }

  /** Counts chunks before `highest`, an index of `#sent`, that the peer has not received (RFC 9260 7.2.4). */
  #missed(highest: number): void {
    let isLoss = false;
    for (let i = 0; i < highest; i++) {
      const sent = this.#sent[i]!;
      if (sent.isAcked || sent.isLost || ++sent.misses < MISSES_UNTIL_LOST) continue;
      this.#lose(sent);
      isLoss = true;
    }
    if (!isLoss || this.#recoveryTsn !== undefined) return;
    this.#recoveryTsn = tsnAfter(this.#firstTsn, this.#sent.length - 1);
    this.#thresholdBytes = Math.max(this.#windowBytes / 2, MIN_THRESHOLD_BYTES);
    this.#windowBytes = this.#thresholdBytes;
    this.#partialBytes = 0;
  }

  #lose(sent: Sent): void {
    if (!sent.isLost) this.#flightBytes -= sent.chunk.length - DATA_OVERHEAD;
    sent.isLost = true;
    this.#hasLost = true;
  }

  #grow(ackedBytes: number): void {
    if (this.#windowBytes <= this.#thresholdBytes) this.#windowBytes += ackedBytes;
    else {
      this.#partialBytes += ackedBytes;
      if (this.#partialBytes >= this.#windowBytes) {
        this.#partialBytes -= this.#windowBytes;
        this.#windowBytes += PACKET_BYTES;
      }
    }
    this.#windowBytes = Math.min(this.#windowBytes, MAX_WINDOW_BYTES);
  }

  /** RFC 9260 6.3.1. */
  #measured(rttMs: number): void {
    if (this.#smoothedMs === undefined) {
      this.#smoothedMs = rttMs;
      this.#variationMs = rttMs / 2;
    } else {
      this.#variationMs = 0.75 * this.#variationMs + 0.25 * Math.abs(this.#smoothedMs - rttMs);
      this.#smoothedMs = 0.875 * this.#smoothedMs + 0.125 * rttMs;
    }
    this.#rtoMs = Math.min(Math.max(this.#smoothedMs + 4 * this.#variationMs, MIN_RTO_MS), MAX_RTO_MS);
  }
}

/** Bytes of the value of a DATA chunk before the data. */
const DATA_OVERHEAD = DATA_HEADER_BYTES - 4;
