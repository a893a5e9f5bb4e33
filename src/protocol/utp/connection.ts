import type { PeerAddress } from "../../base/address.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import {
  encodeUtpPacket,
  type UtpHeader,
  type UtpKind,
  type UtpPacket,
  updateUtpPacket,
} from "../../wire/utp-packet.ts";
import type { UtpId, UtpOutput } from "./contract.ts";
import { Inbox, type ReceiveMemory } from "./inbox.ts";
import { ACK_DELAY_MS, KEEP_ALIVE_MS, LINGER_MS, RECEIVE_WINDOW_BYTES } from "./limits.ts";
import { Sender } from "./sender.ts";
import { sequenceAfter } from "./sequence.ts";

/** Options and dependencies of a connection. */
interface UtpConnectionOptions {
  readonly id: UtpId;
  readonly remote: PeerAddress;
  /** Connection ids of incoming and outgoing packets (BEP 29). */
  readonly receiveId: number;
  readonly sendId: number;
  /** Sequence number of the first packet to send. */
  readonly sequence: number;
  /** Outgoing connections: the connect timeout. Incoming connections: the sequence number of the peer's SYN. */
  readonly timeoutMs?: number;
  readonly ack?: number;
  readonly memory: ReceiveMemory;
  readonly emit: (output: UtpOutput) => void;
}

/** Every second packet is acknowledged at once: congestion control needs frequent delay samples (RFC 6817 2.4.1). */
const PACKETS_PER_ACK = 2;

/**
 * One uTP connection (BEP 29): a reliable, ordered byte stream. After each call, `settle` must be called, which sends
 * what has become due.
 */
export class UtpConnection {
  readonly id: UtpId;
  readonly remote: PeerAddress;
  readonly receiveId: number;
  readonly sendId: number;
  readonly #memory: ReceiveMemory;
  readonly #emit: (output: UtpOutput) => void;
  readonly #sender: Sender;
  #inbox: Inbox | undefined;
  /** Paused while connecting. */
  #isPausedEarly = false;
  #state: "connecting" | "open" | "closing" | "over" = "connecting";
  #now: Instant;
  /** Delay of the peer's last packet, measured by both clocks. */
  #replyDelayUs = 0;
  #unacknowledged = 0;
  #ackAt: Instant | undefined;
  /** When connecting, or lingering after a close, ends. */
  #endsAt: Instant | undefined;
  #sentAt: Instant;

  constructor(options: UtpConnectionOptions, now: Instant) {
    const { sequence, ack, timeoutMs } = options;
    this.id = options.id;
    this.remote = options.remote;
    this.receiveId = options.receiveId;
    this.sendId = options.sendId;
    this.#memory = options.memory;
    this.#emit = options.emit;
    this.#now = this.#sentAt = now;
    this.#sender = new Sender(this.#senderDependencies, sequence, now);
    if (ack !== undefined) {
      this.#state = "open";
      this.#inbox = new Inbox(this.#memory, ack);
      return;
    }
    if (timeoutMs !== undefined) this.#endsAt = after(now, timeoutMs);
    this.#sender.begin(now);
  }

  /** Whether the connection has ended and can be removed. */
  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Bytes written but not sent yet. */
  get bufferedBytes(): number {
    return this.#sender.bufferedBytes;
  }

  /** Takes a packet of the peer. Implausible packets are ignored, because they may be forged. */
  received(packet: UtpPacket, now: Instant): void {
    this.#now = now;
    if (!this.#sender.isPlausible(packet.ack)) return;
    if (packet.kind === "reset") {
      this.#end("reset by the peer", false);
      return;
    }
    if (this.#state === "connecting" && !this.#isSynAnswer(packet)) return;
    this.#replyDelayUs = (microseconds(now) - packet.timestampUs) >>> 0;
    this.#sender.addIncomingDelay(this.#replyDelayUs, now);
    this.#sender.acked(packet, now);
    if (this.#state === "connecting") this.#open(packet);
    else if (packet.kind === "data" || packet.kind === "fin") this.#take(packet);
  }

  write(bytes: Uint8Array): void {
    if (this.#state === "open" || this.#state === "connecting") this.#sender.write(bytes);
  }

  pause(): void {
    if (this.#inbox) this.#inbox.isPaused = true;
    else this.#isPausedEarly = true;
  }

  /** Delivers buffered bytes, and announces the larger window to the peer. */
  resume(now: Instant): void {
    this.#now = now;
    this.#isPausedEarly = false;
    if (this.#state !== "open" || !this.#inbox?.isPaused) return;
    this.#ackAt = now;
    this.#inbox.resume(this.#deliver);
    this.#endIfPeerDid(this.#inbox);
  }

  /** Closes the connection: sent bytes are still retransmitted, unsent bytes are dropped. */
  close(now: Instant): void {
    this.#now = now;
    if (this.#state === "connecting") this.#end("closed by this engine");
    else if (this.#state === "open") this.#linger("closed by this engine");
  }

  /** Handles due timers. */
  wake(now: Instant): void {
    this.#now = now;
    const failure = this.#sender.wake(now);
    if (failure !== undefined) this.#end(failure);
    if (this.#endsAt !== undefined && now >= this.#endsAt) this.#end("connect timeout");
    if (now - this.#sentAt >= KEEP_ALIVE_MS) this.#ackAt = now;
  }

  /** Sends everything that is due. */
  settle(now: Instant): void {
    this.#now = now;
    if (this.#state === "over") return;
    const hasDrained = this.#sender.transmit(this.#state !== "connecting", now);
    if (hasDrained && this.#state === "open") this.#emit({ kind: "drained", id: this.id });
    if (this.#ackAt !== undefined && this.#ackAt <= now) this.#acknowledge();
    if (this.#state === "closing" && this.#sender.isEmpty) this.#state = "over";
  }

  nextWake(): Instant | undefined {
    if (this.#state === "over") return undefined;
    const keepAliveAt = this.#state === "open" ? after(this.#sentAt, KEEP_ALIVE_MS) : undefined;
    const ours = earliest(this.#ackAt, earliest(this.#endsAt, keepAliveAt));
    return earliest(ours, this.#sender.nextWake());
  }

  readonly #senderDependencies = {
    packet: (kind: UtpKind, sequence: number, body: object) =>
      encodeUtpPacket(this.#header(kind, sequence), body),
    post: (packet: Uint8Array) => {
      if (this.#inbox) updateUtpPacket(packet, this.#header("data", 0));
      this.#post(packet);
    },
  };

  readonly #deliver = (bytes: Uint8Array) => {
    this.#emit({ kind: "received", id: this.id, bytes });
  };

  #isSynAnswer(packet: UtpPacket): boolean {
    return packet.kind === "state" && packet.ack === sequenceAfter(this.#sender.nextSequence, -1);
  }

  /** The answer to a SYN carries the sequence number of the peer's first data packet. */
  #open(answer: UtpPacket): void {
    this.#state = "open";
    this.#endsAt = undefined;
    this.#inbox = new Inbox(this.#memory, sequenceAfter(answer.sequence, -1));
    this.#inbox.isPaused = this.#isPausedEarly;
    this.#emit({ kind: "opened", id: this.id });
  }

  #take({ kind, sequence, payload }: UtpPacket): void {
    const inbox = this.#inbox;
    if (this.#state !== "open" || !inbox) {
      // The peer repeats its FIN, so the acknowledgement was lost.
      if (kind === "fin") this.#ackAt = this.#now;
      return;
    }
    // The peer learns of losses at once; while a gap stays as it is, a mask of up to 250 bytes for each packet would be too much.
    const changesGap = inbox.changesGap(sequence);
    const isNew = inbox.take(sequence, payload, kind === "fin", this.#deliver);
    this.#unacknowledged++;
    const isUrgent = (isNew && changesGap) || this.#unacknowledged >= PACKETS_PER_ACK;
    if (isUrgent) this.#ackAt = this.#now;
    else this.#ackAt ??= after(this.#now, ACK_DELAY_MS);
    this.#endIfPeerDid(inbox);
  }

  #endIfPeerDid(inbox: Inbox): void {
    if (!inbox.isAtEnd) return;
    this.#ackAt = this.#now;
    this.#linger("closed by the peer");
  }

  /** Reports the connection as closed, sends FIN, and retransmits for a while. */
  #linger(reason: string): void {
    this.#state = "closing";
    this.#endsAt = after(this.#now, LINGER_MS);
    this.#sender.finish();
    this.#inbox?.clear();
    this.#emit({ kind: "closed", id: this.id, reason });
  }

  #end(reason: string, sendsReset = true): void {
    if (this.#state === "over") return;
    const isReported = this.#state === "closing";
    if (this.#inbox && sendsReset)
      this.#post(encodeUtpPacket(this.#header("reset", this.#sender.nextSequence)));
    this.#state = "over";
    this.#ackAt = undefined;
    this.#sender.clear();
    this.#inbox?.clear();
    if (!isReported) this.#emit({ kind: "closed", id: this.id, reason });
  }

  #acknowledge(): void {
    const header = this.#header("state", this.#sender.nextSequence);
    this.#post(encodeUtpPacket(header, { selectiveAck: this.#inbox?.selectiveAck() }));
    this.#acknowledged();
  }

  #post(bytes: Uint8Array): void {
    this.#sentAt = this.#now;
    this.#emit({ kind: "send", bytes, to: this.remote });
    // Every packet acknowledges; packets behind a gap are acknowledged by selective acks only.
    if (!this.#inbox?.hasGap) this.#acknowledged();
  }

  #acknowledged(): void {
    this.#ackAt = undefined;
    this.#unacknowledged = 0;
  }

  #header(kind: UtpKind, sequence: number): UtpHeader {
    return {
      kind,
      connectionId: kind === "syn" ? this.receiveId : this.sendId,
      timestampUs: microseconds(this.#now),
      delayUs: this.#replyDelayUs,
      windowBytes: this.#inbox?.windowBytes ?? RECEIVE_WINDOW_BYTES,
      sequence,
      ack: this.#inbox?.ack ?? 0,
    };
  }
}

function microseconds(now: Instant): number {
  return Math.floor(now * 1000) % 0x1_0000_0000;
}
