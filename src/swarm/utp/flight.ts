import { after, earliest, type Instant } from "../../base/time.ts";
import { sequenceAfter, stepsBetween } from "./sequence.ts";

/** A packet that the peer may not have yet. */
export interface SentPacket {
  readonly sequence: number;
  bytes: Uint8Array;
  /** What it counts for in windows: its payload. */
  readonly size: number;
  /** Padded to try the large size: without padding when it is sent again. */
  readonly isProbe: boolean;
  sentAt: Instant;
  sends: number;
  state: "flying" | "lost" | "acked";
}

/** What an acknowledgement has brought. */
export interface FlightNews {
  packets: number;
  bytes: number;
  /** The latest of them that was sent once: its round trip is known. */
  measured: SentPacket | undefined;
  probe: SentPacket | undefined;
  lost: number;
  /** The first of the lost ones. */
  firstLost: number | undefined;
  isProbeLost: boolean;
}

/** So many later packets that have arrived make one count as lost (BEP 29), while the path keeps the order. */
const LATER_PACKETS = 3;
/** How long a path that has mixed up packets once is thought to do so. */
const REORDERING_MS = 30_000;

/**
 * The packets on their way, in order. What is lost shows by those sent after it having arrived: three of them, or (RFC
 * 8985) any a quarter of a round trip later; that holds for packets that were sent again, too.
 */
export class Flight {
  /** From `#head` on; what is before it has been acknowledged. */
  #packets: SentPacket[] = [];
  #head = 0;
  #next: number;
  /** The furthest packet that has arrived. */
  #furthest: number | undefined;
  /** When the latest packet that has arrived was sent. */
  #arrivedSentAt = Number.NEGATIVE_INFINITY;
  /** What it took. */
  #arrivedAfterMs = 0;
  #reorderedAt: number | undefined;
  /** Sent, neither acknowledged nor counted as lost, in bytes. */
  flyingBytes = 0;
  /** Sent, and not known to have arrived without a gap, in bytes: what the peer must have room for. */
  unconfirmedBytes = 0;
  lostCount = 0;

  constructor(firstSequence: number) {
    this.#next = firstSequence;
  }

  /** The number of the next new packet. */
  get nextSequence(): number {
    return this.#next;
  }

  get count(): number {
    return this.#packets.length - this.#head;
  }

  /** The first packet that has not been acknowledged. */
  get first(): SentPacket | undefined {
    return this.#packets[this.#head];
  }

  /** The last packet that neither arrived nor was lost. */
  get lastFlying(): SentPacket | undefined {
    for (let at = this.#packets.length - 1; at >= this.#head; at--) {
      if (this.#packets[at]!.state === "flying") return this.#packets[at];
    }
    return undefined;
  }

  /** A new packet goes out; its number is `nextSequence`. */
  add(bytes: Uint8Array, size: number, isProbe: boolean, now: Instant): SentPacket {
    const packet: SentPacket = {
      ...{ sequence: this.#next, bytes, size, isProbe },
      ...{ sentAt: now, sends: 1, state: "flying" },
    };
    this.#packets.push(packet);
    this.#next = sequenceAfter(this.#next);
    this.flyingBytes += size;
    this.unconfirmedBytes += size;
    return packet;
  }

  /** The first packet that was lost; undefined where none was. */
  nextLost(): SentPacket | undefined {
    if (this.lostCount === 0) return undefined;
    for (let at = this.#head; at < this.#packets.length; at++) {
      if (this.#packets[at]!.state === "lost") return this.#packets[at];
    }
    return undefined;
  }

  /** A packet goes out once more. */
  resent(packet: SentPacket, now: Instant): void {
    if (packet.state === "lost") {
      packet.state = "flying";
      this.flyingBytes += packet.size;
      this.lostCount--;
    }
    packet.sentAt = now;
    packet.sends++;
  }

  /** Whether the peer can mean a packet by `ack` that we have sent (the one before the first counts as well). */
  isPlausible(ack: number): boolean {
    const steps = stepsBetween(ack, sequenceAfter(this.#next, -1));
    return steps >= 0 && steps <= this.count;
  }

  /** Takes an acknowledgement that is plausible, and the mask beside it. */
  acked(ack: number, mask: Uint8Array | undefined, now: Instant): FlightNews {
    const news = noNews();
    while (this.count > 0 && stepsBetween(this.first!.sequence, ack) >= 0) {
      const packet = this.first!;
      this.#arrived(packet, news, now);
      this.unconfirmedBytes -= packet.size;
      this.#head++;
    }
    if (this.#head > 0 && this.#head * 2 >= this.#packets.length) {
      this.#packets = this.#packets.slice(this.#head);
      this.#head = 0;
    }
    if (mask) this.#takeMask(ack, mask, news, now);
    return news;
  }

  /** Finds what must be lost by now, and says when to look again. */
  findLost(roundTripMs: number, news: FlightNews, now: Instant): Instant | undefined {
    if (this.#furthest === undefined || this.count === 0) return undefined;
    const isOrdered = this.#reorderedAt === undefined || now - this.#reorderedAt > REORDERING_MS;
    let later = 0;
    let lookAt: Instant | undefined;
    const last = this.#head + stepsBetween(this.first!.sequence, this.#furthest);
    for (let at = Math.min(last, this.#packets.length - 1); at >= this.#head; at--) {
      const packet = this.#packets[at]!;
      if (packet.state === "acked") {
        later++;
        continue;
      }
      if (packet.state === "lost" || packet.sentAt > this.#arrivedSentAt) continue;
      const isOvertaken = isOrdered && packet.sends === 1 && later >= LATER_PACKETS;
      const lateAt = after(packet.sentAt, this.#arrivedAfterMs + roundTripMs / 4);
      if (isOvertaken || now >= lateAt) this.#lose(packet, news);
      else lookAt = earliest(lookAt, lateAt);
    }
    return lookAt;
  }

  /** Nothing came back: whatever is on its way counts as lost. */
  loseAll(): FlightNews {
    const news = noNews();
    for (let at = this.#head; at < this.#packets.length; at++) {
      const packet = this.#packets[at]!;
      if (packet.state === "flying") this.#lose(packet, news);
    }
    return news;
  }

  clear(): void {
    this.#packets = [];
    this.#head = this.flyingBytes = this.unconfirmedBytes = this.lostCount = 0;
  }

  #takeMask(ack: number, mask: Uint8Array, news: FlightNews, now: Instant): void {
    if (this.count === 0) return;
    // The first bit is for the packet after the next one.
    const offset = stepsBetween(this.first!.sequence, sequenceAfter(ack, 2));
    for (let bit = 0; bit < mask.length * 8; bit++) {
      if ((mask[bit >> 3]! & (1 << (bit & 7))) === 0) continue;
      const at = this.#head + offset + bit;
      if (at >= this.#packets.length) return;
      const packet = this.#packets[at];
      if (packet && at >= this.#head) this.#arrived(packet, news, now);
    }
  }

  #arrived(packet: SentPacket, news: FlightNews, now: Instant): void {
    if (packet.state === "acked") return;
    if (packet.state === "flying") this.flyingBytes -= packet.size;
    else this.lostCount--;
    packet.state = "acked";
    news.packets++;
    news.bytes += packet.size;
    if (packet.isProbe && packet.sends === 1) news.probe = packet;
    const steps = this.#furthest === undefined ? 1 : stepsBetween(this.#furthest, packet.sequence);
    if (steps > 0) this.#furthest = packet.sequence;
    else if (packet.sends === 1) this.#reorderedAt = now;
    if (packet.sends === 1) news.measured = packet;
    if (packet.sentAt < this.#arrivedSentAt) return;
    this.#arrivedSentAt = packet.sentAt;
    this.#arrivedAfterMs = now - packet.sentAt;
  }

  #lose(packet: SentPacket, news: FlightNews): void {
    packet.state = "lost";
    this.flyingBytes -= packet.size;
    this.lostCount++;
    news.lost++;
    if (packet.isProbe && packet.sends === 1) news.isProbeLost = true;
    // Found from the last to the first.
    news.firstLost = packet.sequence;
  }
}

/** What there is to say before anything has happened. */
export function noNews(): FlightNews {
  return {
    ...{ packets: 0, bytes: 0, measured: undefined, probe: undefined },
    ...{ lost: 0, firstLost: undefined, isProbeLost: false },
  };
}
