import { after, earliest, type Instant } from "../../base/time.ts";
import { UTP_HEADER_BYTES, type UtpBody, type UtpKind, type UtpPacket } from "../../wire/utp-packet.ts";
import { Congestion } from "./congestion.ts";
import { QueueDelay } from "./delay.ts";
import { Flight, type FlightNews, noNews, type SentPacket } from "./flight.ts";
import { DEAD_MS, LARGE_PACKET_BYTES, MAX_FLIGHT_PACKETS, WINDOW_PROBE_MS } from "./limits.ts";
import { Outbox } from "./outbox.ts";
import { PacketSize } from "./packet-size.ts";
import { RoundTrip } from "./round-trip.ts";
import { sequenceAfter, stepsBetween } from "./sequence.ts";

/** What a sender needs of its connection. */
export interface SenderHost {
  /** A packet with room for its payload at the end. */
  packet(kind: UtpKind, sequence: number, body: UtpBody): Uint8Array;
  /** Sends it, with the latest that is to be said of the other direction. */
  post(packet: Uint8Array): void;
}

/** A tail that was lost is found by sending its last packet again, after two round trips and what acknowledgements may be held
 * back by (RFC 8985 7.2). */
const TAIL_SPARE_MS = 60;
/** An acknowledgement that has been overtaken by so many packets is no longer believed to be one. */
const MAX_OLD_ACK = 2_000;

/** The half of a connection that sends: what is on its way, what is sent again, and how much at once. */
export class Sender {
  readonly #host: SenderHost;
  readonly #flight: Flight;
  readonly #outbox = new Outbox();
  readonly #congestion = new Congestion();
  readonly #delay = new QueueDelay();
  readonly #roundTrip = new RoundTrip();
  readonly #size = new PacketSize();
  /** What the peer can take; it has not said so before its first packet. */
  #peerWindowBytes = LARGE_PACKET_BYTES;
  #lookForLostAt: Instant | undefined;
  /** Losses of packets before this one have been answered for. */
  #answeredFor: number | undefined;
  /** The peer acknowledged something then, or we began to wait for that; a time-out begins the second anew. */
  #progressAt: Instant;
  #waitsSince: Instant;
  #hasTriedTail = false;
  #probeWindowAt: Instant | undefined;
  #finish: "no" | "wanted" | "sent" = "no";

  constructor(host: SenderHost, firstSequence: number, now: Instant) {
    this.#host = host;
    this.#flight = new Flight(firstSequence);
    this.#progressAt = this.#waitsSince = now;
  }

  /** Bytes written and not sent yet. */
  get bufferedBytes(): number {
    return this.#outbox.length;
  }

  /** All has arrived. */
  get isEmpty(): boolean {
    return this.#outbox.length === 0 && this.#flight.count === 0 && this.#finish !== "wanted";
  }

  /** The number of the next new packet, which acknowledgements carry too. */
  get nextSequence(): number {
    return this.#flight.nextSequence;
  }

  /** Sends the packet that begins a connection. */
  begin(now: Instant): void {
    this.#sendNew("syn", 0, now);
  }

  write(bytes: Uint8Array): void {
    this.#outbox.push(bytes);
  }

  /** What is unsent is dropped, and the end is told. */
  finish(): void {
    this.#outbox.clear();
    if (this.#finish === "no") this.#finish = "wanted";
  }

  /** What the clocks say of the other direction. */
  saw(delayUs: number, now: Instant): void {
    this.#delay.saw(delayUs, now);
  }

  /** Whether the peer can have said this in earnest: it acknowledges nothing that we have not sent. */
  isPlausible(ack: number): boolean {
    const steps = stepsBetween(ack, sequenceAfter(this.#flight.nextSequence, -1));
    return steps >= 0 && steps <= this.#flight.count + MAX_OLD_ACK;
  }

  /** Takes what a plausible packet says of ours. */
  acked(packet: UtpPacket, now: Instant): void {
    if (!this.#flight.isPlausible(packet.ack)) return;
    const flyingBytes = this.#flight.flyingBytes;
    const news = this.#flight.acked(packet.ack, packet.selectiveAck, now);
    this.#peerWindowBytes = packet.windowBytes;
    if (packet.delayUs !== 0) this.#delay.told(packet.delayUs, now);
    if (news.measured) this.#roundTrip.add(now - news.measured.sentAt);
    if (news.probe) this.#size.probeArrived();
    if (news.packets > 0) {
      this.#arrived(news, flyingBytes, now);
      this.#wait(now);
    } else if (!this.#peerHasRoom(LARGE_PACKET_BYTES)) this.#progressAt = now;
    this.#findLost(news, now);
    const { first } = this.#flight;
    const isAnswered = !first || (this.#answeredFor !== undefined && isFrom(this.#answeredFor, first));
    if (isAnswered) this.#answeredFor = undefined;
  }

  /** Sends what may be sent, which is nothing new before the connection is open; true where the last written byte has gone. */
  transmit(isOpen: boolean, now: Instant): boolean {
    const capacity = this.#capacity;
    for (let lost = this.#flight.nextLost(); lost; lost = this.#flight.nextLost()) {
      if (!this.#mayFly(lost.size)) return false;
      this.#sendAgain(lost, now);
    }
    if (!isOpen) return false;
    const hadBytes = this.#outbox.length > 0;
    while (this.#outbox.length > 0 && this.#flight.count < MAX_FLIGHT_PACKETS) {
      const size = Math.min(this.#outbox.length, capacity);
      if (!this.#peerHasRoom(size)) this.#askForRoom(now);
      if (!this.#mayFly(size) || !this.#peerHasRoom(size)) break;
      this.#sendNew("data", size, now);
    }
    if (this.#finish === "wanted") {
      this.#finish = "sent";
      this.#sendNew("fin", 0, now);
    }
    return hadBytes && this.#outbox.length === 0;
  }

  /** Does what is due by time alone; why the connection is over, where it is. */
  wake(now: Instant): string | undefined {
    if (isDue(this.#lookForLostAt, now)) this.#findLost(noNews(), now);
    if (isDue(this.#probeWindowAt, now)) this.#probeWindow(now);
    if (this.#flight.count === 0) return undefined;
    if (now - this.#progressAt >= DEAD_MS) return `no answer in ${DEAD_MS / 1000} s`;
    if (isDue(this.#timeoutAt, now)) this.#timedOut(now);
    else if (isDue(this.#tailAt, now)) this.#tryTail(now);
    return undefined;
  }

  nextWake(): Instant | undefined {
    const soonest = earliest(this.#lookForLostAt, this.#probeWindowAt);
    if (this.#flight.count === 0) return soonest;
    return earliest(soonest, earliest(this.#timeoutAt, this.#tailAt));
  }

  clear(): void {
    this.#outbox.clear();
    this.#flight.clear();
  }

  /** Bytes of payload in a packet. */
  get #capacity(): number {
    return this.#size.bytes - UTP_HEADER_BYTES;
  }

  #arrived(news: FlightNews, flyingBytes: number, now: Instant): void {
    const { bytes } = news;
    this.#progressAt = now;
    this.#hasTriedTail = false;
    this.#roundTrip.answered();
    const isLimited = flyingBytes + LARGE_PACKET_BYTES >= this.#congestion.windowBytes;
    const { ms: delayMs, leastUs } = this.#delay;
    const roundTripMs = this.#roundTrip.ms;
    this.#congestion.acked(news.packets, { bytes, delayMs, leastUs, roundTripMs, isLimited }, now);
  }

  #findLost(news: FlightNews, now: Instant): void {
    this.#lookForLostAt = this.#flight.findLost(this.#roundTrip.ms, news, now);
    if (news.firstLost === undefined) return;
    if (news.isProbeLost) this.#size.probeLost();
    const isNews = this.#answeredFor === undefined || stepsBetween(this.#answeredFor, news.firstLost) >= 0;
    if (isNews) this.#answeredFor = this.#flight.nextSequence;
    this.#congestion.lost(news.lost, this.#delay.ms, isNews);
  }

  #timedOut(now: Instant): void {
    this.#waitsSince = now;
    this.#roundTrip.timedOut();
    // Attempts, ends, and what the peer has no room for say nothing of the path.
    const isOfPath = this.#flight.unconfirmedBytes > 0 && this.#peerHasRoom(0);
    const news = this.#flight.loseAll();
    if (news.isProbeLost) this.#size.probeLost();
    if (isOfPath) this.#congestion.timedOut();
    this.#answeredFor = this.#flight.nextSequence;
    this.#delay.forget();
  }

  #tryTail(now: Instant): void {
    this.#hasTriedTail = true;
    const { lastFlying } = this.#flight;
    if (lastFlying) this.#sendAgain(lastFlying, now);
  }

  get #timeoutAt(): Instant {
    return after(this.#waitsSince, this.#roundTrip.timeoutMs);
  }

  get #tailAt(): Instant | undefined {
    if (this.#hasTriedTail || !this.#roundTrip.isKnown || this.#flight.lostCount > 0) return undefined;
    return after(this.#waitsSince, 2 * this.#roundTrip.ms + TAIL_SPARE_MS);
  }

  #mayFly(bytes: number): boolean {
    const { flyingBytes } = this.#flight;
    return flyingBytes === 0 || flyingBytes + bytes <= this.#congestion.windowBytes;
  }

  #peerHasRoom(bytes: number): boolean {
    return this.#flight.unconfirmedBytes + bytes <= this.#peerWindowBytes;
  }

  /** The peer's word that it has room again may be lost: who has nothing on its way would wait for ever. */
  #askForRoom(now: Instant): void {
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
    const bytes = this.#host.packet(kind, this.#flight.nextSequence, body);
    if (size > 0) this.#outbox.take(size, bytes, bytes.length - size);
    if (isProbe) this.#size.probed();
    if (this.#flight.count === 0) this.#progressAt = this.#wait(now);
    this.#flight.add(bytes, size, isProbe, now);
    this.#host.post(bytes);
  }

  #sendAgain(packet: SentPacket, now: Instant): void {
    if (packet.isProbe && packet.sends === 1) {
      const { bytes, size, sequence } = packet;
      packet.bytes = this.#host.packet("data", sequence, { payloadBytes: size });
      packet.bytes.set(bytes.subarray(bytes.length - size), UTP_HEADER_BYTES);
    }
    this.#flight.resent(packet, now);
    this.#host.post(packet.bytes);
  }

  #wait(now: Instant): Instant {
    this.#waitsSince = now;
    return now;
  }
}

function isDue(at: Instant | undefined, now: Instant): boolean {
  return at !== undefined && at <= now;
}

function isFrom(sequence: number, packet: SentPacket): boolean {
  return stepsBetween(sequence, packet.sequence) >= 0;
}
