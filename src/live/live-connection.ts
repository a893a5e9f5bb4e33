import { RateMeter } from "../base/rate.ts";
import type { Instant } from "../base/time.ts";
import { type LiveConnectionId, type LivePriority, PRIORITY } from "../protocol/live/contract.ts";
import type { LiveAbout } from "../protocol/live/messages.ts";
import type { PeerFigures } from "../protocol/swarm/contract.ts";
import type { TcpSocket } from "../runtime/contract.ts";
import type { PausableSender } from "./download-limit.ts";
import type { PeerLink } from "./peer-link.ts";
import type { LiveSender } from "./upload-limit.ts";

/** Limit of bytes in the socket buffer: they can be neither overtaken nor dropped. With 64 KiB they wait a third of a second on a
 * connection of 1.4 Mbit/s. */
const SOCKET_BYTES = 16 * 1024;
/** A peer that accepts no bytes for this long is gone. */
const STALLED_MS = 10_000;
/** A peer that sent us, or received, a live chunk within this time is a parent, or a child. */
const RECENT_MS = 2_000;

/** A link with its socket. */
export class LiveConnection implements LiveSender, PausableSender {
  readonly id: LiveConnectionId;
  readonly link: PeerLink;
  readonly down = new RateMeter();
  readonly up = new RateMeter();
  readonly origin: PeerFigures["origin"];
  readonly isExempt: boolean;
  about: LiveAbout | undefined;
  /** When we last received a chunk in time, and when we last queued one. */
  lastReceivedAt: Instant | undefined;
  lastSentAt: Instant | undefined;
  /** The swarm gets no backlog reports before this time. */
  backlogMutedUntil: Instant;
  #isPaused = false;
  #socket: TcpSocket | undefined;
  #written = 0;
  #accepted = 0;
  #acceptedAt: Instant;
  /** When the oldest live message in the socket buffer was queued. */
  #socketLiveAt: Instant | undefined;

  constructor(
    id: LiveConnectionId,
    link: PeerLink,
    { origin, isExempt }: Pick<LiveConnection, "origin" | "isExempt">,
    now: Instant,
  ) {
    this.id = id;
    this.isExempt = isExempt;
    this.link = link;
    this.origin = origin;
    this.#acceptedAt = this.backlogMutedUntil = now;
  }

  /** Whether the swarm requested the connection (its ids are even), so that it knows of it from the start. */
  get isRequested(): boolean {
    return this.id % 2 === 0;
  }

  /** Sets the socket, which an outgoing connection gets after its creation. */
  attach(socket: TcpSocket): void {
    this.#socket = socket;
  }

  top(now: Instant): LivePriority | undefined {
    return this.#room > 0 ? this.link.queue.top(now) : undefined;
  }

  send(maxBytes: number, last: LivePriority, now: Instant): number {
    const bytes = this.link.queue.take(Math.min(maxBytes, this.#room), now, last);
    const liveAt = this.link.queue.takenLiveAt();
    if (!bytes || !this.#socket) return 0;
    if (this.#socket.bufferedBytes === 0) this.#socketLiveAt = undefined;
    this.#socketLiveAt ??= liveAt;
    if (this.#written === this.#accepted) this.#acceptedAt = now;
    this.#written += bytes.length;
    this.up.add(bytes.length, now);
    this.#socket.write(bytes);
    return bytes.length;
  }

  /** The socket buffer is empty. */
  drained(now: Instant): void {
    this.#socketLiveAt = undefined;
    this.#accepted = this.#written;
    this.#acceptedAt = now;
  }

  /** How long the oldest live message has waited in the queue or the socket buffer. */
  waitMs(now: Instant): number {
    const inSocket = this.#socket && this.#socket.bufferedBytes > 0 ? this.#socketLiveAt : undefined;
    const oldest = inSocket ?? this.link.queue.oldestLiveAt;
    return oldest === undefined ? 0 : now - oldest;
  }

  /** Whether the peer has accepted no bytes for {@link STALLED_MS} while some were waiting. */
  isStalled(now: Instant): boolean {
    const accepted = this.#written - (this.#socket?.bufferedBytes ?? 0);
    if (accepted > this.#accepted || accepted === this.#written) {
      this.#accepted = accepted;
      this.#acceptedAt = now;
    }
    return now - this.#acceptedAt > STALLED_MS;
  }

  /** Whether reading is paused, because the download limit is used up. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket?.resume();
  }

  /** Sends waiting control messages, such as BYE, then closes. */
  close(now: Instant): void {
    this.link.close();
    if (this.#socket && this.link.hasHandshake) this.send(SOCKET_BYTES, PRIORITY.control, now);
    this.link.queue.clear();
    if (!this.#socket || this.#socket.bufferedBytes === 0) this.#socket?.close();
  }

  /** Closes at once. */
  destroy(): void {
    this.#socket?.close();
  }

  /** Whether a chunk that we had subscribed to arrived recently. */
  isParent(now: Instant): boolean {
    return this.lastReceivedAt !== undefined && now - this.lastReceivedAt < RECENT_MS;
  }

  figures(now: Instant): PeerFigures {
    const isRecent = (at: Instant | undefined) => at !== undefined && now - at < RECENT_MS;
    const { role } = this.about ?? {};
    const flags = [
      this.isParent(now) ? "p" : "",
      isRecent(this.lastSentAt) ? "c" : "",
      this.link.isIncoming ? "i" : "",
      role === "relay" ? "r" : "",
      role === "source" ? "s" : "",
    ];
    return {
      address: this.link.listenAddress ?? this.link.remote,
      origin: this.origin,
      client: this.link.client,
      bytesPerSecondDown: this.down.bytesPerSecond(now),
      bytesPerSecondUp: this.up.bytesPerSecond(now),
      progress: 0,
      flags: flags.join(""),
    };
  }

  get #room(): number {
    return this.#socket ? SOCKET_BYTES - this.#socket.bufferedBytes : 0;
  }
}
