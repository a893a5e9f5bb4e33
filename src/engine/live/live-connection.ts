import { RateMeter } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";
import type { TcpSocket } from "../../runtime/contract.ts";
import type { PeerFigures } from "../../swarm/contract.ts";
import { type LiveConnectionId, type LivePriority, PRIORITY } from "../../swarm/live/contract.ts";
import type { LiveAbout } from "../../swarm/live/messages.ts";
import type { PausableSender } from "./download-limit.ts";
import type { PeerLink } from "./peer-link.ts";
import type { LiveSender } from "./upload-limit.ts";

/** Bytes waiting in a socket: few, since what is there can be neither overtaken nor thrown away. */
const SOCKET_BYTES = 64 * 1024;
/** A peer that takes nothing for so long is gone. */
const STALLED_MS = 10_000;
/** Who gave us, or got, a live chunk in this time is a parent, or a child. */
const RECENT_MS = 2_000;

/** A link and its socket. */
export class LiveConnection implements LiveSender, PausableSender {
  readonly id: LiveConnectionId;
  readonly link: PeerLink;
  readonly down = new RateMeter();
  readonly up = new RateMeter();
  readonly origin: PeerFigures["origin"];
  readonly isExempt: boolean;
  about: LiveAbout | undefined;
  /** When it last gave us a chunk that was not late, and when one was last queued for it. */
  gaveAt: Instant | undefined;
  gotAt: Instant | undefined;
  /** The swarm is told of no backlog before. */
  quietUntil: Instant;
  #isPaused = false;
  #socket: TcpSocket | undefined;
  #written = 0;
  #taken = 0;
  #takenAt: Instant;
  /** When the oldest live message in the socket was queued. */
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
    this.#takenAt = this.quietUntil = now;
  }

  /** The swarm asked for it (its number is even then), and knows of it from the start. */
  get isAsked(): boolean {
    return this.id % 2 === 0;
  }

  /** Its socket, which is not there yet while it is asked for. */
  attach(socket: TcpSocket): void {
    this.#socket = socket;
  }

  top(now: Instant): LivePriority | undefined {
    return this.#room > 0 ? this.link.queue.top(now) : undefined;
  }

  send(most: number, last: LivePriority, now: Instant): number {
    const bytes = this.link.queue.take(Math.min(most, this.#room), now, last);
    const liveAt = this.link.queue.takenLiveAt();
    if (!bytes || !this.#socket) return 0;
    if (this.#socket.bufferedBytes === 0) this.#socketLiveAt = undefined;
    this.#socketLiveAt ??= liveAt;
    if (this.#written === this.#taken) this.#takenAt = now;
    this.#written += bytes.length;
    this.up.add(bytes.length, now);
    this.#socket.write(bytes);
    return bytes.length;
  }

  /** All that was written has gone to the kernel. */
  drained(now: Instant): void {
    this.#socketLiveAt = undefined;
    this.#taken = this.#written;
    this.#takenAt = now;
  }

  /** How long the oldest live message has waited that is not in the kernel yet. */
  waitMs(now: Instant): number {
    const inSocket = this.#socket && this.#socket.bufferedBytes > 0 ? this.#socketLiveAt : undefined;
    const oldest = inSocket ?? this.link.queue.oldestLiveAt;
    return oldest === undefined ? 0 : now - oldest;
  }

  /** Whether the peer has taken nothing for long, though there was something. */
  isStalled(now: Instant): boolean {
    const taken = this.#written - (this.#socket?.bufferedBytes ?? 0);
    if (taken > this.#taken || taken === this.#written) {
      this.#taken = taken;
      this.#takenAt = now;
    }
    return now - this.#takenAt > STALLED_MS;
  }

  /** Whether nothing is read from it for now: the limit on download is spent. */
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

  /** Sends what control waits, such as a goodbye, then closes. */
  close(now: Instant): void {
    this.link.close();
    if (this.#socket && this.link.isGreeted) this.send(SOCKET_BYTES, PRIORITY.control, now);
    this.link.queue.clear();
    if (!this.#socket || this.#socket.bufferedBytes === 0) this.#socket?.close();
  }

  /** Closes without waiting for anything. */
  destroy(): void {
    this.#socket?.close();
  }

  figures(now: Instant): PeerFigures {
    const isRecent = (at: Instant | undefined) => at !== undefined && now - at < RECENT_MS;
    const { role } = this.about ?? {};
    const flags = [
      isRecent(this.gaveAt) ? "p" : "",
      isRecent(this.gotAt) ? "c" : "",
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
