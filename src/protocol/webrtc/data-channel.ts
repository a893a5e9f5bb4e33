import { equalBytes, readU16 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import {
  CHUNK,
  DATA_FLAG,
  decodeInit,
  decodePacket,
  decodeSack,
  encodeInit,
  encodePacket,
  encodeSack,
  type SctpChunk,
} from "./sctp-packet.ts";
import { INITIAL_RECEIVE_WINDOW_BYTES, type IncomingData, SctpReceiver } from "./sctp-receiver.ts";
import { PAYLOAD, SctpSender } from "./sctp-sender.ts";

/** Options of a channel. */
export interface DataChannelSetup {
  /** Whether this side opens the association and the channel: it made the offer. */
  readonly opens: boolean;
  /** The client in the DTLS handshake uses even stream numbers (RFC 8832 6). */
  readonly isDtlsClient: boolean;
  readonly port: { readonly local: number; readonly remote: number };
  /** Random numbers of 32 bits; the tag is not 0. */
  readonly tag: number;
  readonly firstTsn: number;
  /** Random bytes that prove that the peer receives our packets. */
  readonly cookie: Uint8Array;
}

/** Requests of a channel to its driver. */
export type DataChannelOutput =
  /** A packet for the DTLS connection. */
  | { readonly kind: "send"; readonly bytes: Uint8Array }
  | { readonly kind: "opened" }
  /** `bytes` is valid until the next call of a method. */
  | { readonly kind: "received"; readonly bytes: Uint8Array }
  /** Everything written has been sent at least once. */
  | { readonly kind: "drained" }
  | { readonly kind: "closed"; readonly reason: string };

/** INIT and COOKIE ECHO are repeated after 500 ms, doubled up to 4 s. */
const FIRST_RETRY_MS = 500;
const MAX_RETRIES = 9;
/** Time limit of the whole setup. */
const OPEN_TIMEOUT_MS = 30_000;
/** An acknowledgement is sent for every fourth packet, or after this time. RFC 9260 6.2 recommends every second; that takes a fifth
 * more CPU. */
const SACK_DELAY_MS = 50;
const PACKETS_PER_SACK = 4;
const MAX_STREAMS = 65_535;
/** Memory of a buffer beside its bytes, so that a peer cannot send many small ones while reading is paused. */
const BUFFER_OVERHEAD_BYTES = 128;
const DCEP_ACK = new Uint8Array([2]);
const DCEP_OPEN = 3;
/** Reliable and ordered (RFC 8832 5.1). */
const RELIABLE = 0;
const RESET_REQUEST = 13;
/** RE-CONFIG response: success (RFC 6525 4.4). */
const RESET_PERFORMED = [0, 16, 0, 12];

/**
 * One reliable, ordered data channel over SCTP (RFC 8831, 8832, 9260) as a byte stream; the boundaries of messages are not kept. What a
 * browser needs is supported: one channel, its closing, and no partial reliability. A peer that opens more channels gets no answer.
 */
export class DataChannel {
  readonly #setup: DataChannelSetup;
  readonly #sender: SctpSender;
  readonly #receiver = new SctpReceiver();
  readonly #outputs: DataChannelOutput[] = [];
  #state: "new" | "init" | "cookie" | "established" | "closed" = "new";
  #peerTag = 0;
  /** The peer's half of the association, from the INIT to which we responded. */
  #offered: { readonly tag: number; readonly firstTsn: number; readonly windowBytes: number } | undefined;
  #cookieEcho: Uint8Array | undefined;
  #retryAt: Instant | undefined;
  #retries = 0;
  #deadline: Instant | undefined;
  #streamId: number | undefined;
  #isOpen = false;
  #sackAt: Instant | undefined;
  #unacknowledged = 0;
  #isPaused = false;
  /** Received while paused, and their memory. */
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Bytes were written since the last `drained`. */
  #wasWritten = false;

  constructor(setup: DataChannelSetup) {
    this.#setup = setup;
    this.#sender = new SctpSender(setup.firstTsn);
  }

  /** Unsent bytes. */
  get bufferedBytes(): number {
    return this.#sender.queuedBytes;
  }

  /** Starts when DTLS is connected. */
  start(now: Instant): void {
    this.#deadline = after(now, OPEN_TIMEOUT_MS);
    if (!this.#setup.opens) return;
    this.#state = "init";
    this.#repeat(now);
  }

  /** Sends bytes; takes ownership. */
  write(bytes: Uint8Array, now: Instant): void {
    if (this.#state === "closed") return;
    this.#wasWritten = true;
    this.#sender.write(bytes);
    this.#flush(now);
  }

  /** Stops delivering bytes; the window of the peer closes when its limit is reached. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    for (const bytes of waiting) this.#outputs.push({ kind: "received", bytes });
    // Tells the peer that the window is open again.
    if (waiting.length > 0) this.#sendSack();
  }

  /** Closes at once; unsent bytes are dropped. */
  close(): void {
    if (this.#state === "closed") return;
    if (this.#peerTag !== 0) this.#send(CHUNK.abort, new Uint8Array(0));
    this.#state = "closed";
  }

  /** Takes a packet from DTLS. Throws `DecodeError` if it is malformed; the caller closes the connection. */
  received(packet: Uint8Array, now: Instant): void {
    if (this.#state === "closed") return;
    const { tag, chunks } = decodePacket(packet);
    const isInit = chunks[0]?.type === CHUNK.init;
    if (tag !== (isInit ? 0 : this.#setup.tag)) return;
    let hasData = false;
    for (const chunk of chunks) {
      if (this.#isClosed()) return;
      if (chunk.type === CHUNK.data) {
        hasData = true;
        this.#data(chunk, now);
      } else this.#chunk(chunk, now);
    }
    if (hasData && !this.#isClosed()) this.#acknowledge(now);
    this.#flush(now);
  }

  wake(now: Instant): void {
    if (this.#state === "closed") return;
    if (!this.#isOpen && this.#deadline !== undefined && now >= this.#deadline) {
      this.#end("the data channel was not opened in time");
      return;
    }
    if (this.#retryAt !== undefined && now >= this.#retryAt) this.#repeat(now);
    if (this.#sackAt !== undefined && now >= this.#sackAt) this.#sendSack();
    if (!this.#sender.timedOut(now)) {
      this.#end("the peer acknowledges nothing");
      return;
    }
    this.#flush(now);
  }

  nextWake(): Instant | undefined {
    if (this.#state === "closed") return undefined;
    const deadline = this.#isOpen ? undefined : this.#deadline;
    return earliest(earliest(this.#retryAt, this.#sackAt), earliest(this.#sender.timeoutAt, deadline));
  }

  poll(): DataChannelOutput | undefined {
    return this.#outputs.shift();
  }

  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #chunk({ type, value }: SctpChunk, now: Instant): void {
    switch (type) {
      case CHUNK.init:
        this.#initReceived(value);
        break;
      case CHUNK.initAck:
        this.#initAcknowledged(value, now);
        break;
      case CHUNK.cookieEcho:
        if (!this.#offered || !equalBytes(value, this.#setup.cookie)) return;
        this.#send(CHUNK.cookieAck, new Uint8Array(0));
        this.#established(now);
        break;
      case CHUNK.cookieAck:
        if (this.#state === "cookie") this.#established(now);
        break;
      case CHUNK.sack:
        this.#sacked(value, now);
        break;
      case CHUNK.heartbeat:
        this.#send(CHUNK.heartbeatAck, value);
        break;
      case CHUNK.abort:
        this.#end("closed by the peer");
        break;
      case CHUNK.shutdown:
        this.#send(CHUNK.shutdownAck, new Uint8Array(0));
        this.#end("closed by the peer");
        break;
      case CHUNK.reconfig:
        this.#reset(value);
        break;
    }
  }

  /** Both sides may send INIT at the same time; each then responds with the tag of its own INIT (RFC 9260 5.2.1). */
  #initReceived(value: Uint8Array): void {
    if (this.#state === "established") return;
    const { tag, firstTsn, windowBytes } = decodeInit(value);
    this.#offered = { tag, firstTsn, windowBytes };
    this.#peerTag = tag;
    this.#send(CHUNK.initAck, this.#init(this.#setup.cookie));
  }

  #initAcknowledged(value: Uint8Array, now: Instant): void {
    if (this.#state !== "init") return;
    const init = decodeInit(value);
    if (!init.cookie) throw new DecodeError("SCTP", 0, "INIT ACK without a cookie");
    this.#offered = init;
    this.#peerTag = init.tag;
    this.#cookieEcho = init.cookie;
    this.#state = "cookie";
    this.#retries = 0;
    this.#repeat(now);
  }

  /** Sends INIT or COOKIE ECHO, again after a timeout. */
  #repeat(now: Instant): void {
    if (this.#retries > MAX_RETRIES) {
      this.#end("the peer does not respond over SCTP");
      return;
    }
    this.#retryAt = after(now, FIRST_RETRY_MS * 2 ** Math.min(this.#retries++, 3));
    if (this.#state === "init") this.#send(CHUNK.init, this.#init(undefined), 0);
    else this.#send(CHUNK.cookieEcho, this.#cookieEcho!);
  }

  #init(cookie: Uint8Array | undefined): Uint8Array {
    const { tag, firstTsn } = this.#setup;
    return encodeInit({
      ...{ tag, firstTsn, cookie },
      windowBytes: INITIAL_RECEIVE_WINDOW_BYTES,
      outboundStreams: MAX_STREAMS,
      inboundStreams: MAX_STREAMS,
    });
  }

  #established(now: Instant): void {
    if (this.#state === "established") return;
    const { tag, firstTsn, windowBytes } = this.#offered!;
    this.#state = "established";
    this.#retryAt = undefined;
    this.#peerTag = tag;
    this.#receiver.start(firstTsn);
    this.#sender.peerWindowBytes = windowBytes;
    if (!this.#setup.opens) return;
    this.#useStream(this.#setup.isDtlsClient ? 0 : 1);
    // Priority, reliability, label and protocol are empty (RFC 8832 5.1).
    this.#sender.control(new Uint8Array([DCEP_OPEN, RELIABLE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    this.#open(now);
  }

  #useStream(id: number): void {
    this.#streamId = id;
    this.#sender.streamId = id;
  }

  #open(now: Instant): void {
    this.#isOpen = true;
    this.#outputs.push({ kind: "opened" });
    this.#flush(now);
  }

  #data(chunk: SctpChunk, now: Instant): void {
    if (this.#state === "cookie") this.#established(now);
    if (this.#state !== "established") return;
    this.#receiver.received(chunk, this.#waitingBytes, (data) => this.#deliver(data, now));
  }

  #deliver({ flags, streamId, payload, bytes }: IncomingData, now: Instant): void {
    if (this.#isClosed()) return;
    if (payload === PAYLOAD.control) {
      if (this.#setup.opens || this.#streamId !== undefined || bytes[0] !== DCEP_OPEN) return;
      const isWhole = flags === (DATA_FLAG.begin | DATA_FLAG.end) && bytes.length >= 12;
      if (!isWhole || bytes[1] !== RELIABLE)
        throw new DecodeError("data channel", 0, "the channel is not reliable and ordered");
      this.#useStream(streamId);
      this.#sender.control(DCEP_ACK);
      this.#open(now);
      return;
    }
    if (streamId !== this.#streamId || payload === PAYLOAD.emptyBinary) return;
    if (payload !== PAYLOAD.binary || flags & DATA_FLAG.unordered)
      throw new DecodeError("data channel", 0, "expected ordered binary messages");
    if (!this.#isPaused) {
      this.#outputs.push({ kind: "received", bytes });
      return;
    }
    this.#waiting.push(bytes.slice());
    this.#waitingBytes += bytes.length + BUFFER_OVERHEAD_BYTES;
  }

  #acknowledge(now: Instant): void {
    if (this.#state !== "established") return;
    this.#unacknowledged++;
    if (this.#receiver.isUrgent || this.#unacknowledged >= PACKETS_PER_SACK) this.#sendSack();
    else this.#sackAt ??= after(now, SACK_DELAY_MS);
  }

  #sendSack(): void {
    this.#sackAt = undefined;
    this.#unacknowledged = 0;
    this.#send(CHUNK.sack, encodeSack(this.#receiver.sack(this.#waitingBytes)));
  }

  #sacked(value: Uint8Array, now: Instant): void {
    if (this.#state !== "established") return;
    if (!this.#sender.acknowledged(decodeSack(value), now))
      throw new DecodeError("SCTP", 0, "bytes are acknowledged that were not sent");
  }

  /** The peer closes channels (RFC 6525 4.1): confirms it, and ends if it is ours. */
  #reset(value: Uint8Array): void {
    if (value.length < 16 || readU16(value, 0) !== RESET_REQUEST) return;
    const length = Math.min(readU16(value, 2), value.length);
    const response = new Uint8Array(12);
    response.set(RESET_PERFORMED);
    response.set(value.subarray(4, 8), 4);
    response[11] = 1;
    this.#send(CHUNK.reconfig, response);
    let isOurs = length === 16;
    for (let at = 16; at + 2 <= length; at += 2) isOurs ||= readU16(value, at) === this.#streamId;
    if (isOurs) this.#end("closed by the peer");
  }

  #flush(now: Instant): void {
    if (this.#state !== "established") return;
    for (const { flags, value } of this.#sender.take(now)) this.#send(CHUNK.data, value, undefined, flags);
    if (!this.#wasWritten || this.#sender.queuedBytes > 0) return;
    this.#wasWritten = false;
    this.#outputs.push({ kind: "drained" });
  }

  #send(type: number, value: Uint8Array, tag = this.#peerTag, flags = 0): void {
    const bytes = encodePacket({ port: this.#setup.port, tag }, type, flags, value);
    this.#outputs.push({ kind: "send", bytes });
  }

  #end(reason: string): void {
    if (this.#state === "closed") return;
    this.close();
    this.#outputs.push({ kind: "closed", reason });
  }
}
