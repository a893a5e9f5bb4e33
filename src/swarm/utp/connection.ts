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

/** What a connection begins with. */
export interface UtpBeginning {
  readonly id: UtpId;
  readonly remote: PeerAddress;
  /** The numbers that packets to us and from us carry (BEP 29). */
  readonly receiveId: number;
  readonly sendId: number;
  /** The number of our first packet. */
  readonly sequence: number;
  /** How long to call; or, where the peer called us, the number of the packet by which it did. */
  readonly timeoutMs?: number;
  readonly ack?: number;
  readonly memory: ReceiveMemory;
  readonly emit: (output: UtpOutput) => void;
}

/** Every second packet is acknowledged at once (RFC 6817 2.4.1 asks for frequent samples of the delay). */
const PACKETS_PER_ACK = 2;

/**
 * One connection of uTP (BEP 29): bytes in order, whatever becomes of the packets. Whatever happens to it is followed by
 * `settle`, which sends what has become due.
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
  /** Paused before there was anything to pause. */
  #isPausedEarly = false;
  #state: "calling" | "open" | "closing" | "over" = "calling";
  #now: Instant;
  /** What the peer's last packet took, by both clocks. */
  #replyDelayUs = 0;
  #unacknowledged = 0;
  #ackAt: Instant | undefined;
  /** An attempt, or what is left of a closed connection, ends then. */
  #endsAt: Instant | undefined;
  #sentAt: Instant;

  constructor(beginning: UtpBeginning, now: Instant) {
    const { sequence, ack, timeoutMs } = beginning;
    this.id = beginning.id;
    this.remote = beginning.remote;
    this.receiveId = beginning.receiveId;
    this.sendId = beginning.sendId;
    this.#memory = beginning.memory;
    this.#emit = beginning.emit;
    this.#now = this.#sentAt = now;
    this.#sender = new Sender(this.#host, sequence, now);
    if (ack !== undefined) {
      this.#state = "open";
      this.#inbox = new Inbox(this.#memory, ack);
      return;
    }
    if (timeoutMs !== undefined) this.#endsAt = after(now, timeoutMs);
    this.#sender.begin(now);
  }

  /** Nothing is left of it. */
  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Bytes written and not sent yet. */
  get bufferedBytes(): number {
    return this.#sender.bufferedBytes;
  }

  /** Takes a packet of the peer. Those that cannot be meant for us are not answered: anybody may have sent them. */
  received(packet: UtpPacket, now: Instant): void {
    this.#now = now;
    if (!this.#sender.isPlausible(packet.ack)) return;
    if (packet.kind === "reset") {
      this.#end("reset by the peer", false);
      return;
    }
    if (this.#state === "calling" && !this.#isAnswer(packet)) return;
    this.#replyDelayUs = (microseconds(now) - packet.timestampUs) >>> 0;
    this.#sender.saw(this.#replyDelayUs, now);
    this.#sender.acked(packet, now);
    if (this.#state === "calling") this.#open(packet);
    else if (packet.kind === "data" || packet.kind === "fin") this.#take(packet);
  }

  write(bytes: Uint8Array): void {
    if (this.#state === "open" || this.#state === "calling") this.#sender.write(bytes);
  }

  pause(): void {
    if (this.#inbox) this.#inbox.isPaused = true;
    else this.#isPausedEarly = true;
  }

  /** Hands on what came meanwhile, and tells the peer that there is room again. */
  resume(now: Instant): void {
    this.#now = now;
    this.#isPausedEarly = false;
    if (this.#state !== "open" || !this.#inbox?.isPaused) return;
    this.#ackAt = now;
    this.#inbox.resume(this.#deliver);
    this.#endIfPeerDid(this.#inbox);
  }

  /** Ends it from our side: what was sent is seen through, what is unsent is dropped. */
  close(now: Instant): void {
    this.#now = now;
    if (this.#state === "calling") this.#end("closed by us");
    else if (this.#state === "open") this.#linger("closed by us");
  }

  /** Does what is due by time alone. */
  wake(now: Instant): void {
    this.#now = now;
    const problem = this.#sender.wake(now);
    if (problem !== undefined) this.#end(problem);
    if (this.#endsAt !== undefined && now >= this.#endsAt) this.#end("no answer in time");
    if (now - this.#sentAt >= KEEP_ALIVE_MS) this.#ackAt = now;
  }

  /** Sends what may be sent now. */
  settle(now: Instant): void {
    this.#now = now;
    if (this.#state === "over") return;
    const hasDrained = this.#sender.transmit(this.#state !== "calling", now);
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

  readonly #host = {
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

  #isAnswer(packet: UtpPacket): boolean {
    return packet.kind === "state" && packet.ack === sequenceAfter(this.#sender.nextSequence, -1);
  }

  /** The answer carries the number of the peer's first packet: it comes after it. */
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
      // Whoever tells its end a second time has not heard that we know.
      if (kind === "fin") this.#ackAt = this.#now;
      return;
    }
    const hadGap = inbox.hasGap;
    const isNew = inbox.take(sequence, payload, kind === "fin", this.#deliver);
    this.#unacknowledged++;
    const isUrgent = !isNew || hadGap || inbox.hasGap || this.#unacknowledged >= PACKETS_PER_ACK;
    if (isUrgent) this.#ackAt = this.#now;
    else this.#ackAt ??= after(this.#now, ACK_DELAY_MS);
    this.#endIfPeerDid(inbox);
  }

  #endIfPeerDid(inbox: Inbox): void {
    if (!inbox.isAtEnd) return;
    this.#ackAt = this.#now;
    this.#linger("closed by the peer");
  }

  /** For those above it is over; the peer is told, and what it may lack is sent again for a while. */
  #linger(reason: string): void {
    this.#state = "closing";
    this.#endsAt = after(this.#now, LINGER_MS);
    this.#sender.finish();
    this.#inbox?.clear();
    this.#emit({ kind: "closed", id: this.id, reason });
  }

  #end(reason: string, tellsPeer = true): void {
    if (this.#state === "over") return;
    const isKnown = this.#state === "closing";
    if (this.#inbox && tellsPeer)
      this.#post(encodeUtpPacket(this.#header("reset", this.#sender.nextSequence)));
    this.#state = "over";
    this.#ackAt = undefined;
    this.#sender.clear();
    this.#inbox?.clear();
    if (!isKnown) this.#emit({ kind: "closed", id: this.id, reason });
  }

  #acknowledge(): void {
    const header = this.#header("state", this.#sender.nextSequence);
    this.#post(encodeUtpPacket(header, { selectiveAck: this.#inbox?.selectiveAck() }));
    this.#acknowledged();
  }

  #post(bytes: Uint8Array): void {
    this.#sentAt = this.#now;
    this.#emit({ kind: "send", bytes, to: this.remote });
    // Every packet says what has come; what came early only those that say it expressly.
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
