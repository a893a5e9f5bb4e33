import type { EventHeap } from "./event-heap.ts";

/** An IP packet of 1,500 bytes, and its headers with TCP timestamps. */
const SEGMENT_BYTES = 1_448;
const HEADER_BYTES = 52;
/** RFC 6928. */
const INITIAL_WINDOW_BYTES = 10 * SEGMENT_BYTES;
/** CUBIC in the region where it grows as Reno does (RFC 9438, 4.3): small windows and losses by chance. */
const SHRINK = 0.7;
const GROWTH = (3 * (1 - SHRINK)) / (1 + SHRINK);
const MIN_RTO_US = 200_000;
const MAX_RTO_US = 10_000_000;
/** Linux acknowledges a single packet after this time, and waits this much longer for such an acknowledgement. */
const DELAYED_ACK_US = 40_000;
const MAX_DELAYED_ACK_US = 200_000;
/** A packet is lost when so many later ones have arrived, or by time (RFC 8985). */
const LATER_ARRIVALS = 3;
/** Bytes that the engine lets wait in a socket, besides what the kernel holds. */
const SOCKET_BYTES = 16 * 1024;
/** A router drops what would wait longer than this. */
const ROUTER_QUEUE_MS = 200;
const MIN_ROUTER_QUEUE_BYTES = 32 * 1024;

/** One direction of the line of a house: packets one after another, at a fixed rate, with a bounded queue. */
export class Line {
  readonly #events: EventHeap;
  readonly #bytesPerSecond: number;
  readonly #maxQueueUs: number;
  #freeUs = 0;

  constructor(events: EventHeap, bytesPerSecond: number) {
    this.#events = events;
    this.#bytesPerSecond = bytesPerSecond;
    this.#maxQueueUs = Math.max(1e3 * ROUTER_QUEUE_MS, (1e6 * MIN_ROUTER_QUEUE_BYTES) / bytesPerSecond);
  }

  /** How long a packet waits that comes now. */
  get queueUs(): number {
    return Math.max(0, this.#freeUs - this.#events.nowUs);
  }

  /** Takes a packet. Returns when its last bit has passed; undefined if the queue is full. */
  pass(bytes: number): number | undefined {
    if (this.queueUs > this.#maxQueueUs) return undefined;
    this.#freeUs = Math.max(this.#freeUs, this.#events.nowUs) + (1e6 * bytes) / this.#bytesPerSecond;
    return this.#freeUs;
  }
}

/** The way of one direction of a connection. */
export interface TcpWay {
  readonly events: EventHeap;
  /** One way, without queues. */
  readonly delayUs: number;
  readonly up: Line;
  readonly down: Line;
  /** The line on which acknowledgements leave the receiver: they wait behind its uploads. */
  readonly back: Line;
  readonly isLost: () => boolean;
  /** Whether the sender and the receiver still exist. */
  readonly isSending: () => boolean;
  readonly isReceiving: () => boolean;
  /** There is room again. */
  readonly drained: () => void;
}

interface Segment {
  readonly bytes: number;
  /** Set on the last segment of a message. */
  readonly arrived: (() => void) | undefined;
  state: "flying" | "lost" | "acknowledged";
  isReceived: boolean;
  isRepeated: boolean;
  sentUs: number;
  /** Its place among all transmissions; 0: none yet. */
  order: number;
}

/** A transmission that has arrived. */
interface Arrival {
  readonly segment: Segment;
  readonly sentUs: number;
  readonly order: number;
}

/** One direction of a TCP connection between two nodes: bytes arrive in order, so that a lost packet delays those
 * behind it; the window starts small, grows with acknowledgements, shrinks with losses and after idle times; and the
 * send buffer is bounded. */
export class TcpPipe {
  readonly #way: TcpWay;
  /** What is not acknowledged, in the order of sending, then what has not been sent. */
  readonly #segments: Segment[] = [];
  /** The number of sent ones, and of those that have arrived without a gap. */
  #sent = 0;
  #received = 0;
  readonly #lost: Segment[] = [];
  #waitingBytes = 0;
  #flyingBytes = 0;
  #windowBytes = INITIAL_WINDOW_BYTES;
  #slowStartBytes = Number.POSITIVE_INFINITY;
  #isLimited = false;
  #isProbed = false;
  /** Losses of packets sent before this time have already reduced the window. */
  #reducedUs = -1;
  #transmissions = 0;
  /** The newest transmission that has been acknowledged. */
  #newest = 0;
  #lastSentUs = 0;
  #roundTripUs: number;
  #variationUs: number;
  #backoff = 1;
  /** Received packets that are not acknowledged yet. */
  #unanswered: Arrival[] = [];
  #dueUs = 0;
  #hasTimer = false;
  #fullSinceUs: number | undefined;

  constructor(way: TcpWay) {
    this.#way = way;
    // The handshake has measured it.
    this.#roundTripUs = 2 * way.delayUs;
    this.#variationUs = way.delayUs;
  }

  /** Whether the engine may write more. */
  get hasRoom(): boolean {
    return this.#waitingBytes < SOCKET_BYTES + 2 * this.#windowBytes;
  }

  /** How long bytes have been waiting that the kernel does not take, in ms. */
  get waitMs(): number {
    return this.#fullSinceUs === undefined ? 0 : (this.#way.events.nowUs - this.#fullSinceUs) / 1_000;
  }

  /** Sends a message; `arrived` runs when all of it, and all before it, has arrived. */
  write(bytes: number, arrived: () => void): void {
    this.#waitingBytes += bytes;
    for (let left = bytes; left > 0; left -= SEGMENT_BYTES) {
      this.#segments.push({
        bytes: Math.min(left, SEGMENT_BYTES),
        arrived: left <= SEGMENT_BYTES ? arrived : undefined,
        ...{ state: "flying", isReceived: false, isRepeated: false, sentUs: 0, order: 0 },
      });
    }
    this.#restart();
    this.#send();
    if (this.#waitingBytes > 2 * this.#windowBytes) this.#fullSinceUs ??= this.#way.events.nowUs;
  }

  get #nowUs(): number {
    return this.#way.events.nowUs;
  }

  get #timeoutUs(): number {
    const us = this.#roundTripUs + Math.max(MIN_RTO_US, 4 * this.#variationUs);
    return Math.min(MAX_RTO_US, us * this.#backoff);
  }

  /** After an idle time the window is halved for each timeout, down to the initial one (RFC 5681, 4.1). */
  #restart(): void {
    if (this.#sent > 0) return;
    let idleUs = this.#nowUs - this.#lastSentUs;
    if (idleUs > this.#timeoutUs)
      this.#slowStartBytes = Math.max(this.#slowStartBytes, 0.75 * this.#windowBytes);
    for (; idleUs > this.#timeoutUs && this.#windowBytes > INITIAL_WINDOW_BYTES; idleUs -= this.#timeoutUs)
      this.#windowBytes = Math.max(INITIAL_WINDOW_BYTES, this.#windowBytes / 2);
  }

  #send(): void {
    this.#isLimited = false;
    for (;;) {
      const segment = this.#lost[0] ?? this.#segments[this.#sent];
      if (!segment) break;
      if (this.#flyingBytes > 0 && this.#flyingBytes + segment.bytes > this.#windowBytes) {
        this.#isLimited = true;
        break;
      }
      if (segment === this.#lost[0]) this.#lost.shift();
      else this.#sent++;
      this.#flyingBytes += segment.bytes;
      segment.state = "flying";
      this.#transmit(segment);
    }
    this.#setTimer();
  }

  #transmit(segment: Segment): void {
    const { events, up, down, delayUs, isLost } = this.#way;
    segment.isRepeated = segment.order > 0;
    segment.sentUs = this.#lastSentUs = this.#nowUs;
    segment.order = ++this.#transmissions;
    const { sentUs, order } = segment;
    const leftUs = up.pass(segment.bytes + HEADER_BYTES);
    if (leftUs === undefined || isLost()) return;
    events.at(leftUs + delayUs, () => {
      const arrivedUs = down.pass(segment.bytes + HEADER_BYTES);
      if (arrivedUs !== undefined) events.at(arrivedUs, () => this.#arrive({ segment, sentUs, order }));
    });
  }

  #arrive(arrival: Arrival): void {
    const { segment } = arrival;
    const { events, isReceiving } = this.#way;
    if (!isReceiving()) return;
    const isInOrder = segment === this.#segments[this.#received];
    segment.isReceived = true;
    this.#unanswered.push(arrival);
    for (let next = this.#segments[this.#received]; next?.isReceived; next = this.#segments[this.#received]) {
      this.#received++;
      next.arrived?.();
    }
    // RFC 5681, 4.2: more than one full packet, or one out of order, is acknowledged at once.
    const bytes = this.#unanswered.reduce((sum, each) => sum + each.segment.bytes, 0);
    if (!isInOrder || bytes > SEGMENT_BYTES) this.#answer();
    else
      events.at(this.#nowUs + DELAYED_ACK_US, () => {
        if (this.#unanswered.includes(arrival)) this.#answer();
      });
  }

  #answer(): void {
    const { events, delayUs, back } = this.#way;
    const answered = this.#unanswered;
    this.#unanswered = [];
    events.at(this.#nowUs + back.queueUs + delayUs, () => {
      for (const arrival of answered) this.#acknowledged(arrival);
    });
  }

  #acknowledged({ segment, sentUs, order }: Arrival): void {
    if (!this.#way.isSending()) return;
    this.#newest = Math.max(this.#newest, order);
    this.#isProbed = false;
    this.#backoff = 1;
    if (!segment.isRepeated) this.#measure(this.#nowUs - sentUs);
    if (segment.state !== "acknowledged") this.#accept(segment, sentUs);
    this.#findLost();
    this.#send();
    if (this.#waitingBytes <= 2 * this.#windowBytes) this.#fullSinceUs = undefined;
    if (this.hasRoom) this.#way.drained();
  }

  #accept(segment: Segment, sentUs: number): void {
    if (segment.state === "flying") this.#flyingBytes -= segment.bytes;
    else this.#lost.splice(this.#lost.indexOf(segment), 1);
    segment.state = "acknowledged";
    this.#waitingBytes -= segment.bytes;
    if (this.#isLimited && sentUs > this.#reducedUs) {
      const { bytes } = segment;
      const isSlowStart = this.#windowBytes < this.#slowStartBytes;
      this.#windowBytes += isSlowStart ? bytes : (GROWTH * SEGMENT_BYTES * bytes) / this.#windowBytes;
    }
    let done = 0;
    while (done < this.#received && this.#segments[done]!.state === "acknowledged") done++;
    this.#segments.splice(0, done);
    this.#sent -= done;
    this.#received -= done;
  }

  #measure(us: number): void {
    this.#variationUs += (Math.abs(us - this.#roundTripUs) - this.#variationUs) / 4;
    this.#roundTripUs += (us - this.#roundTripUs) / 8;
  }

  #findLost(): void {
    let later = 0;
    for (let i = this.#sent - 1; i >= 0; i--) {
      const segment = this.#segments[i]!;
      if (segment.state === "acknowledged") later++;
      if (segment.state !== "flying" || segment.order >= this.#newest) continue;
      // The order of a packet that was sent again says nothing: only its time does.
      const isOvertaken = later >= LATER_ARRIVALS && !segment.isRepeated;
      if (isOvertaken || this.#nowUs - segment.sentUs > 1.25 * this.#roundTripUs) this.#lose(segment);
    }
    this.#lost.sort((a, b) => this.#segments.indexOf(a) - this.#segments.indexOf(b));
  }

  #lose(segment: Segment): void {
    segment.state = "lost";
    this.#flyingBytes -= segment.bytes;
    this.#lost.push(segment);
    if (segment.sentUs < this.#reducedUs) return;
    this.#reducedUs = this.#nowUs;
    this.#windowBytes = this.#slowStartBytes = Math.max(2 * SEGMENT_BYTES, SHRINK * this.#windowBytes);
  }

  /** One event at a time: when it comes, the time may have moved on. */
  #setTimer(): void {
    if (this.#sent === 0) return;
    const probeUs = 2 * this.#roundTripUs + (this.#sent === 1 ? MAX_DELAYED_ACK_US : 0);
    const waitUs = this.#isProbed ? this.#timeoutUs : Math.min(probeUs, this.#timeoutUs);
    const [first] = this.#segments;
    // Its loss is certain by then, if a later one has arrived.
    const hasGap = first!.state === "flying" && first!.order < this.#newest;
    const lostUs = hasGap ? first!.sentUs + 1.25 * this.#roundTripUs + 1 : Number.POSITIVE_INFINITY;
    // In whole microseconds, as events are: rounded down, the event would come before its time, again and again.
    this.#dueUs = Math.ceil(Math.min(Math.max(this.#nowUs + 1, lostUs), this.#nowUs + waitUs));
    this.#schedule();
  }

  #schedule(): void {
    if (this.#hasTimer) return;
    this.#hasTimer = true;
    this.#way.events.at(this.#dueUs, () => {
      this.#hasTimer = false;
      if (this.#sent === 0 || !this.#way.isSending()) return;
      if (this.#nowUs < this.#dueUs) this.#schedule();
      else this.#timeout();
    });
  }

  #timeout(): void {
    this.#findLost();
    const last = this.#segments[this.#sent - 1]!;
    if (this.#lost.length === 0 && !this.#isProbed && last.state === "flying") {
      // RFC 8985, tail loss probe: its acknowledgement shows what is missing.
      this.#isProbed = true;
      this.#transmit(last);
      this.#setTimer();
      return;
    }
    if (this.#lost.length === 0) {
      for (const segment of this.#segments.slice(0, this.#sent))
        if (segment.state === "flying") this.#lose(segment);
      this.#windowBytes = SEGMENT_BYTES;
      this.#backoff *= 2;
    }
    this.#isProbed = true;
    this.#send();
  }
}
