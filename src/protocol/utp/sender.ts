import { after, earliest, type Instant } from "../../base/time.ts";
import { UTP_HEADER_BYTES, type UtpBody, type UtpKind, type UtpPacket } from "../../wire/utp-packet.ts";
import { Congestion } from "./congestion.ts";
import { QueueDelay } from "./delay.ts";
import { Flight, type FlightChanges, noChanges, type SentPacket } from "./flight.ts";
import {
  DEAD_MS,
  FIRST_TIMEOUT_MS,
  FLIGHT_LEVELS,
  FLIGHT_PROBES,
  LARGE_PACKET_BYTES,
  MAX_LOST_FLIGHT_PROBES,
  MAX_SIZE_PROBES,
  MAX_TIMEOUT_MS,
  MIN_TIMEOUT_MS,
  SAFE_FLIGHT_PACKETS,
  SMALL_PACKET_BYTES,
  WINDOW_PROBE_MS,
} from "./limits.ts";
import { Outbox } from "./outbox.ts";
import { sequenceAfter, stepsBetween } from "./sequence.ts";

/** Operations of the connection that a sender depends on. */
interface SenderDependencies {
  /** Encodes a packet with room for its payload at the end. */
  packet(kind: UtpKind, sequence: number, body: UtpBody): Uint8Array;
  /** Sends a packet with the current acknowledgement and window. */
  post(packet: Uint8Array): void;
}

/** Tail loss probe: the last packet is sent again after two round trips plus this allowance for delayed acknowledgements
 * (RFC 8985 7.2). */
const TAIL_PROBE_ALLOWANCE_MS = 60;
/** An acknowledgement this many packets behind is implausible. */
const MAX_OLD_ACK = 2_000;

/** The sending half of a connection: packets in flight, retransmission, congestion control. */
export class Sender {
  readonly #dependencies: SenderDependencies;
  readonly #flight: Flight;
  readonly #outbox = new Outbox();
  readonly #congestion = new Congestion();
  readonly #delay = new QueueDelay();
  readonly #roundTrip = new RoundTrip();
  readonly #size = new PacketSize();
  readonly #flightLimit = new FlightLimit();
  /** Receive window of the peer; unknown before its first packet. */
  #peerWindowBytes = LARGE_PACKET_BYTES;
  #findLostAt: Instant | undefined;
  /** Losses of packets before this sequence number have already reduced the window. */
  #recoveryUntil: number | undefined;
  /** When the peer last acknowledged something, and when the retransmission timer was started. */
  #progressAt: Instant;
  #timerStartedAt: Instant;
  #hasProbedTail = false;
  #probeWindowAt: Instant | undefined;
  #finish: "no" | "wanted" | "sent" = "no";

  constructor(dependencies: SenderDependencies, firstSequence: number, now: Instant) {
    this.#dependencies = dependencies;
    this.#flight = new Flight(firstSequence);
    this.#progressAt = this.#timerStartedAt = now;
  }

  /** Bytes written but not sent yet. */
  get bufferedBytes(): number {
    return this.#outbox.length;
  }

  /** Whether everything has been acknowledged. */
  get isEmpty(): boolean {
    return this.#outbox.length === 0 && this.#flight.count === 0 && this.#finish !== "wanted";
  }

  /** Sequence number of the next new packet, which acknowledgements carry, too. */
  get nextSequence(): number {
    return this.#flight.nextSequence;
  }

  /** Sends the SYN. */
  begin(now: Instant): void {
    this.#sendNew("syn", 0, now);
  }

  write(bytes: Uint8Array): void {
    this.#outbox.push(bytes);
  }

  /** Drops unsent bytes and sends FIN. */
  finish(): void {
    this.#outbox.clear();
    if (this.#finish === "no") this.#finish = "wanted";
  }

  /** Adds the delay of an incoming packet. */
  addIncomingDelay(delayUs: number, now: Instant): void {
    this.#delay.addIncoming(delayUs, now);
  }

  /** Whether a packet with this ack may come from the peer: it acknowledges only sent packets. */
  isPlausible(ack: number): boolean {
    const steps = stepsBetween(ack, sequenceAfter(this.#flight.nextSequence, -1));
    return steps >= 0 && steps <= this.#flight.count + MAX_OLD_ACK;
  }

  /** Takes the acknowledgement of a plausible packet. */
  acked(packet: UtpPacket, now: Instant): void {
    if (!this.#flight.isPlausible(packet.ack)) return;
    const flyingBytes = this.#flight.flyingBytes;
    const changes = this.#flight.acked(packet.ack, packet.selectiveAck, now);
    this.#peerWindowBytes = packet.windowBytes;
    if (packet.delayUs !== 0) this.#delay.addOutgoing(packet.delayUs, now);
    if (changes.measured) this.#roundTrip.add(now - changes.measured.sentAt);
    if (changes.probe) this.#size.probeArrived();
    this.#flightLimit.reached(changes.reach);
    if (changes.packets > 0) {
      this.#arrived(changes, flyingBytes, now);
      this.#timerStartedAt = now;
    } else if (!this.#peerHasRoom(LARGE_PACKET_BYTES)) this.#progressAt = now;
    this.#findLost(changes, now);
    const { first } = this.#flight;
    const isRecovered = !first || (this.#recoveryUntil !== undefined && isFrom(this.#recoveryUntil, first));
    if (isRecovered) this.#recoveryUntil = undefined;
  }

  /** Sends what the windows allow; new data only if the connection is open. Returns true if the outbox became empty. */
  transmit(isOpen: boolean, now: Instant): boolean {
    const capacity = this.#capacity;
    for (let lost = this.#flight.nextLost(); lost; lost = this.#flight.nextLost()) {
      if (!this.#fitsWindow(lost.size)) return false;
      this.#resend(lost, now);
    }
    if (!isOpen) return false;
    const hadBytes = this.#outbox.length > 0;
    while (this.#outbox.length > 0 && this.#flight.count < this.#flightLimit.sendable) {
      const size = Math.min(this.#outbox.length, capacity);
      if (!this.#peerHasRoom(size)) this.#scheduleWindowProbe(now);
      if (!this.#fitsWindow(size) || !this.#peerHasRoom(size)) break;
      this.#sendNew("data", size, now);
    }
    if (this.#finish === "wanted") {
      this.#finish = "sent";
      this.#sendNew("fin", 0, now);
    }
    return hadBytes && this.#outbox.length === 0;
  }

  /** Handles due timers; returns the reason if the connection has failed. */
  wake(now: Instant): string | undefined {
    if (isDue(this.#findLostAt, now)) this.#findLost(noChanges(), now);
    if (isDue(this.#probeWindowAt, now)) this.#probeWindow(now);
    if (this.#flight.count === 0) return undefined;
    if (now - this.#progressAt >= DEAD_MS) return `no answer in ${DEAD_MS / 1000} s`;
    if (isDue(this.#timeoutAt, now)) this.#timedOut(now);
    else if (isDue(this.#tailProbeAt, now)) this.#probeTail(now);
    return undefined;
  }

  nextWake(): Instant | undefined {
    const soonest = earliest(this.#findLostAt, this.#probeWindowAt);
    if (this.#flight.count === 0) return soonest;
    return earliest(soonest, earliest(this.#timeoutAt, this.#tailProbeAt));
  }

  clear(): void {
    this.#outbox.clear();
    this.#flight.clear();
  }

  /** Payload bytes of a packet. */
  get #capacity(): number {
    return this.#size.bytes - UTP_HEADER_BYTES;
  }

  #arrived({ packets, bytes }: FlightChanges, flyingBytes: number, now: Instant): void {
    this.#progressAt = now;
    this.#hasProbedTail = false;
    this.#roundTrip.answered();
    const isLimited = flyingBytes + LARGE_PACKET_BYTES >= this.#congestion.windowBytes;
    const { ms: delayMs, minimumUs } = this.#delay;
    const roundTripMs = this.#roundTrip.ms;
    this.#congestion.acked(packets, { bytes, delayMs, minimumUs, roundTripMs, isLimited }, now);
  }

  #findLost(changes: FlightChanges, now: Instant): void {
    this.#findLostAt = this.#flight.findLost(this.#roundTrip.ms, changes, now);
    this.#flightLimit.lost(changes.lostFlightProbes);
    if (changes.firstLost === undefined) return;
    if (changes.isProbeLost) this.#size.probeLost();
    // The peer may have dropped flight probes, not the path.
    const lost = changes.lost - Math.max(0, changes.lostFlightProbes);
    if (lost <= 0) return;
    const isFirst =
      this.#recoveryUntil === undefined || stepsBetween(this.#recoveryUntil, changes.firstLost) >= 0;
    if (isFirst) this.#recoveryUntil = this.#flight.nextSequence;
    this.#congestion.lost(lost, this.#delay.ms, isFirst);
  }

  #timedOut(now: Instant): void {
    this.#timerStartedAt = now;
    this.#roundTrip.timedOut();
    // A lost SYN or FIN, and data that the peer has no room for, do not reveal the capacity of the path.
    const isPathLoss = this.#flight.unconfirmedBytes > 0 && this.#peerHasRoom(0);
    const changes = this.#flight.loseAll();
    if (changes.isProbeLost) this.#size.probeLost();
    if (isPathLoss) this.#congestion.timedOut();
    this.#recoveryUntil = this.#flight.nextSequence;
    this.#delay.clearRecent();
  }

  #probeTail(now: Instant): void {
    this.#hasProbedTail = true;
    const { lastFlying } = this.#flight;
    if (lastFlying) this.#resend(lastFlying, now);
  }

  get #timeoutAt(): Instant {
    return after(this.#timerStartedAt, this.#roundTrip.timeoutMs);
  }

  get #tailProbeAt(): Instant | undefined {
    if (this.#hasProbedTail || !this.#roundTrip.isKnown || this.#flight.lostCount > 0) return undefined;
    return after(this.#timerStartedAt, 2 * this.#roundTrip.ms + TAIL_PROBE_ALLOWANCE_MS);
  }

  #fitsWindow(bytes: number): boolean {
    const { flyingBytes } = this.#flight;
    return flyingBytes === 0 || flyingBytes + bytes <= this.#congestion.windowBytes;
  }

  #peerHasRoom(bytes: number): boolean {
    return this.#flight.unconfirmedBytes + bytes <= this.#peerWindowBytes;
  }

  /** The peer's window update may be lost: without packets in flight the connection would wait forever. */
  #scheduleWindowProbe(now: Instant): void {
    if (this.#flight.count === 0) this.#probeWindowAt ??= after(now, WINDOW_PROBE_MS);
  }

  #probeWindow(now: Instant): void {
    this.#probeWindowAt = undefined;
    if (this.#flight.count > 0 || this.#outbox.length === 0) return;
    this.#sendNew("data", Math.min(this.#outbox.length, this.#capacity), now);
  }

  #sendNew(kind: UtpKind, size: number, now: Instant): void {
    const isProbe = size > 0 && size === this.#capacity && this.#size.wantsProbe;
    const body = { payloadBytes: size, ...(isProbe && { paddedBytes: LARGE_PACKET_BYTES }) };
    const bytes = this.#dependencies.packet(kind, this.#flight.nextSequence, body);
    if (size > 0) this.#outbox.take(size, bytes, bytes.length - size);
    if (isProbe) this.#size.probed();
    if (this.#flight.count === 0) this.#progressAt = this.#timerStartedAt = now;
    const isFlightProbe = this.#flight.count >= this.#flightLimit.buffers;
    this.#flight.add(bytes, size, { isProbe, isFlightProbe }, now);
    this.#dependencies.post(bytes);
  }

  #resend(packet: SentPacket, now: Instant): void {
    if (packet.isProbe && packet.sends === 1) {
      const { bytes, size, sequence } = packet;
      packet.bytes = this.#dependencies.packet("data", sequence, { payloadBytes: size });
      packet.bytes.set(bytes.subarray(bytes.length - size), UTP_HEADER_BYTES);
    }
    this.#flight.resent(packet, now);
    this.#dependencies.post(packet.bytes);
  }
}

/**
 * Path MTU discovery: packets start small; a packet of small payload padded to the large size probes the path. If it arrives,
 * all packets may be large; if it is lost, it is retransmitted without padding, so a path that drops large packets delays
 * nothing. (A large packet could not be split for retransmission: it may have arrived, and only its acknowledgement lost.)
 */
class PacketSize {
  #isLarge = false;
  #probes = 0;
  #isProbing = false;

  /** Packet size in bytes, including the header. */
  get bytes(): number {
    return this.#isLarge ? LARGE_PACKET_BYTES : SMALL_PACKET_BYTES;
  }

  /** Whether the next packet should be padded to {@link LARGE_PACKET_BYTES}. */
  get wantsProbe(): boolean {
    return !this.#isLarge && !this.#isProbing && this.#probes < MAX_SIZE_PROBES;
  }

  probed(): void {
    this.#isProbing = true;
    this.#probes++;
  }

  probeArrived(): void {
    this.#isProbing = false;
    this.#isLarge = true;
  }

  probeLost(): void {
    this.#isProbing = false;
  }
}

/**
 * How many packets may be in flight. A packet behind a gap is of no use if the peer drops it, and at a round trip of 100 ms the
 * 500 packets that every peer buffers are 25 Mbit/s if each round trip has losses. So a few packets beyond the limit find
 * out whether the peer acknowledges them selectively.
 */
class FlightLimit {
  #packets = SAFE_FLIGHT_PACKETS;
  #level = 0;
  #lostProbes = 0;

  /** Packets in flight below which another one may be sent. */
  get sendable(): number {
    const isKnown = this.#level === FLIGHT_LEVELS.length || this.#lostProbes >= MAX_LOST_FLIGHT_PROBES;
    return this.#packets + (isKnown ? 0 : FLIGHT_PROBES);
  }

  /** Packets behind a gap that the peer is known to buffer. */
  get buffers(): number {
    return FLIGHT_LEVELS[this.#level]?.buffers ?? Number.POSITIVE_INFINITY;
  }

  /** The peer has buffered a packet this far behind its cumulative acknowledgement. */
  reached(distance: number): void {
    if (distance <= this.buffers) return;
    this.#packets = FLIGHT_LEVELS[this.#level]!.packets;
    this.#level++;
    this.#lostProbes = 0;
  }

  /** Counts lost probes minus arrived ones. */
  lost(probes: number): void {
    this.#lostProbes = Math.max(0, this.#lostProbes + probes);
  }
}

/** Round trip time and retransmission timeout (BEP 29, RFC 6298). Milliseconds. */
class RoundTrip {
  #smoothMs: number | undefined;
  #variationMs = 0;
  #backOff = 1;

  /** Adds the round trip of a packet that was sent once. */
  add(ms: number): void {
    if (this.#smoothMs === undefined) {
      this.#smoothMs = ms;
      this.#variationMs = ms / 2;
      return;
    }
    this.#variationMs += (Math.abs(this.#smoothMs - ms) - this.#variationMs) / 4;
    this.#smoothMs += (ms - this.#smoothMs) / 8;
  }

  /** Smoothed round trip; an estimate before the first sample. */
  get ms(): number {
    return this.#smoothMs ?? FIRST_TIMEOUT_MS / 2;
  }

  get isKnown(): boolean {
    return this.#smoothMs !== undefined;
  }

  /** Time without any acknowledgement after which all packets in flight are lost. */
  get timeoutMs(): number {
    const base =
      this.#smoothMs === undefined
        ? FIRST_TIMEOUT_MS
        : Math.max(this.#smoothMs + 4 * this.#variationMs, MIN_TIMEOUT_MS);
    return Math.min(base * this.#backOff, MAX_TIMEOUT_MS);
  }

  /** Doubles the next timeout. */
  timedOut(): void {
    this.#backOff = Math.min(this.#backOff * 2, 64);
  }

  /** Resets the backoff: the peer is reachable. */
  answered(): void {
    this.#backOff = 1;
  }
}

function isDue(at: Instant | undefined, now: Instant): boolean {
  return at !== undefined && at <= now;
}

function isFrom(sequence: number, packet: SentPacket): boolean {
  return stepsBetween(sequence, packet.sequence) >= 0;
}
