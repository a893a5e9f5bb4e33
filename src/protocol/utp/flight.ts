import { after, earliest, type Instant } from "../../base/time.ts";
import { sequenceAfter, stepsBetween } from "./sequence.ts";

/** A sent packet that may not have arrived. */
export interface SentPacket {
  readonly sequence: number;
  bytes: Uint8Array;
  /** Payload bytes, which count towards windows. */
  readonly size: number;
  /** Padded to probe the large packet size; retransmitted without padding. */
  readonly isProbe: boolean;
  /** One of the packets that find out how many the peer buffers behind a gap. */
  readonly isFlightProbe: boolean;
  sentAt: Instant;
  sends: number;
  state: "flying" | "lost" | "acked";
}

/** What an acknowledgement or a timeout has changed. */
export interface FlightChanges {
  packets: number;
  bytes: number;
  /** The latest acknowledged packet that was sent only once, which gives a round trip sample. */
  measured: SentPacket | undefined;
  probe: SentPacket | undefined;
  lost: number;
  /** The sequence number of the first lost packet. */
  firstLost: number | undefined;
  isProbeLost: boolean;
  /** Flight probes that were lost, minus those that arrived. */
  lostFlightProbes: number;
  /** The selectively acknowledged packet that is furthest behind the gap: its distance from the cumulative ack. */
  reach: number;
}

/** A packet is lost if this many later packets have arrived (BEP 29), unless the path reorders packets. */
const REORDER_THRESHOLD = 3;
/** How long a path counts as reordering after it has reordered a packet. */
const REORDERING_MS = 30_000;

/**
 * The packets in flight, in order. A packet is lost if packets sent after it have arrived: three of them, or any one a
 * quarter of a round trip later (RFC 8985), which also applies to retransmitted packets.
 */
export class Flight {
  /** Valid from `#head` on; earlier packets have been acknowledged. */
  #packets: SentPacket[] = [];
  #head = 0;
  #next: number;
  /** The highest acknowledged sequence number. */
  #furthest: number | undefined;
  /** When the most recently sent of the acknowledged packets was sent. */
  #arrivedSentAt = Number.NEGATIVE_INFINITY;
  /** Its round trip time. */
  #arrivedAfterMs = 0;
  #reorderedAt: number | undefined;
  /** Bytes sent and neither acknowledged nor lost. */
  flyingBytes = 0;
  /** Bytes sent and not acknowledged cumulatively, which the peer's receive window must hold. */
  unconfirmedBytes = 0;
  lostCount = 0;

  constructor(firstSequence: number) {
    this.#next = firstSequence;
  }

  /** The sequence number of the next new packet. */
  get nextSequence(): number {
    return this.#next;
  }

  get count(): number {
    return this.#packets.length - this.#head;
  }

  /** The first packet that is not acknowledged. */
  get first(): SentPacket | undefined {
    return this.#packets[this.#head];
  }

  /** The last packet that is neither acknowledged nor lost. */
  get lastFlying(): SentPacket | undefined {
    for (let at = this.#packets.length - 1; at >= this.#head; at--) {
      if (this.#packets[at]!.state === "flying") return this.#packets[at];
    }
    return undefined;
  }

  /** Adds a new packet; its sequence number is `nextSequence`. */
  add(
    bytes: Uint8Array,
    size: number,
    { isProbe, isFlightProbe }: Pick<SentPacket, "isProbe" | "isFlightProbe">,
    now: Instant,
  ): SentPacket {
    const packet: SentPacket = {
      ...{ sequence: this.#next, bytes, size, isProbe, isFlightProbe },
      ...{ sentAt: now, sends: 1, state: "flying" },
    };
    this.#packets.push(packet);
    this.#next = sequenceAfter(this.#next);
    this.flyingBytes += size;
    this.unconfirmedBytes += size;
    return packet;
  }

  /** Returns the first lost packet, or undefined. */
  nextLost(): SentPacket | undefined {
    if (this.lostCount === 0) return undefined;
    for (let at = this.#head; at < this.#packets.length; at++) {
      if (this.#packets[at]!.state === "lost") return this.#packets[at];
    }
    return undefined;
  }

  /** A packet was retransmitted. */
  resent(packet: SentPacket, now: Instant): void {
    if (packet.state === "lost") {
      packet.state = "flying";
      this.flyingBytes += packet.size;
      this.lostCount--;
    }
    packet.sentAt = now;
    packet.sends++;
  }

  /** Whether `ack` refers to a packet in flight, or to the one before the first. */
  isPlausible(ack: number): boolean {
    const steps = stepsBetween(ack, sequenceAfter(this.#next, -1));
    return steps >= 0 && steps <= this.count;
  }

  /** Takes a plausible acknowledgement and its selective ack mask (BEP 29). */
  acked(ack: number, mask: Uint8Array | undefined, now: Instant): FlightChanges {
    const changes = noChanges();
    while (this.count > 0 && stepsBetween(this.first!.sequence, ack) >= 0) {
      const packet = this.first!;
      this.#arrived(packet, changes, now);
      this.unconfirmedBytes -= packet.size;
      this.#head++;
    }
    if (this.#head > 0 && this.#head * 2 >= this.#packets.length) {
      this.#packets = this.#packets.slice(this.#head);
      this.#head = 0;
    }
    if (mask) this.#takeMask(ack, mask, changes, now);
    return changes;
  }

  /** Detects lost packets; returns when to check again. */
  findLost(roundTripMs: number, changes: FlightChanges, now: Instant): Instant | undefined {
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
      const isOvertaken = isOrdered && packet.sends === 1 && later >= REORDER_THRESHOLD;
      const lateAt = after(packet.sentAt, this.#arrivedAfterMs + roundTripMs / 4);
      if (isOvertaken || now >= lateAt) this.#lose(packet, changes);
      else lookAt = earliest(lookAt, lateAt);
    }
    return lookAt;
  }

  /** After a timeout: all packets in flight are lost. */
  loseAll(): FlightChanges {
    const changes = noChanges();
    for (let at = this.#head; at < this.#packets.length; at++) {
      const packet = this.#packets[at]!;
      if (packet.state === "flying") this.#lose(packet, changes);
    }
    return changes;
  }

  clear(): void {
    this.#packets = [];
    this.#head = this.flyingBytes = this.unconfirmedBytes = this.lostCount = 0;
  }

  #takeMask(ack: number, mask: Uint8Array, changes: FlightChanges, now: Instant): void {
    if (this.count === 0) return;
    // The first bit stands for the second packet after `ack`.
    const offset = stepsBetween(this.first!.sequence, sequenceAfter(ack, 2));
    for (let bit = 0; bit < mask.length * 8; bit++) {
      if ((mask[bit >> 3]! & (1 << (bit & 7))) === 0) continue;
      const at = this.#head + offset + bit;
      if (at >= this.#packets.length) return;
      changes.reach = bit + 2;
      const packet = this.#packets[at];
      if (packet && at >= this.#head) this.#arrived(packet, changes, now);
    }
  }

  #arrived(packet: SentPacket, changes: FlightChanges, now: Instant): void {
    if (packet.state === "acked") return;
    if (packet.state === "flying") this.flyingBytes -= packet.size;
    else this.lostCount--;
    packet.state = "acked";
    changes.packets++;
    changes.bytes += packet.size;
    if (packet.isProbe && packet.sends === 1) changes.probe = packet;
    const steps = this.#furthest === undefined ? 1 : stepsBetween(this.#furthest, packet.sequence);
    if (steps > 0) this.#furthest = packet.sequence;
    else if (packet.sends === 1) this.#reorderedAt = now;
    if (packet.sends === 1) changes.measured = packet;
    if (packet.isFlightProbe && packet.sends === 1) changes.lostFlightProbes--;
    if (packet.sentAt < this.#arrivedSentAt) return;
    this.#arrivedSentAt = packet.sentAt;
    this.#arrivedAfterMs = now - packet.sentAt;
  }

  #lose(packet: SentPacket, changes: FlightChanges): void {
    packet.state = "lost";
    this.flyingBytes -= packet.size;
    this.lostCount++;
    changes.lost++;
    if (packet.isProbe && packet.sends === 1) changes.isProbeLost = true;
    if (packet.isFlightProbe && packet.sends === 1) changes.lostFlightProbes++;
    // Losses are found from the last packet to the first.
    changes.firstLost = packet.sequence;
  }
}

/** Returns an empty set of changes. */
export function noChanges(): FlightChanges {
  return {
    ...{ packets: 0, bytes: 0, measured: undefined, probe: undefined },
    ...{ lost: 0, firstLost: undefined, isProbeLost: false, lostFlightProbes: 0, reach: 0 },
  };
}
