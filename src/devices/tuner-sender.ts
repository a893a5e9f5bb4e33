import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type Instant } from "../base/time.ts";
import { writeRtpTs } from "../media/rtp.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { Clock, Net } from "../runtime/contract.ts";
import type { TunerStream, TunerTarget } from "./virtual-tuner.ts";

/** Packets of a channel at the speed at which they play. */
export interface TunerFeed {
  /** Resolves with whole packets; undefined at the end. */
  next(): Promise<Uint8Array | undefined>;
  close(): void;
}

/** Dependencies of {@link sendToTarget}. */
export interface TunerSenderDependencies {
  readonly net: Pick<Net, "bindUdp">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Seven packets fit into an Ethernet frame; all receivers expect them. */
const DATAGRAM_BYTES = 7 * TS_PACKET_BYTES;
const SECOND_MS = 1_000;

/**
 * Sends a channel to a client as datagrams, plain or in RTP. The channel is read no faster than it plays, so nothing is queued. Calls
 * `ended` unless the stream is stopped.
 */
export function sendToTarget(
  { net, clock, log }: TunerSenderDependencies,
  { address, isRtp }: TunerTarget,
  open: (signal: AbortSignal) => Promise<TunerFeed>,
  ended: () => void,
): TunerStream {
  const over = new AbortController();
  const rate = new SecondRate();
  const run = async () => {
    const socket = await net.bindUdp(
      { host: address.host.includes(":") ? "::" : "0.0.0.0", port: 0 },
      () => {},
    );
    let feed: TunerFeed | undefined;
    try {
      feed = await open(over.signal);
      over.signal.addEventListener("abort", () => feed?.close());
      let sequence = 0;
      // Datagrams are full, so the rest of a delivery waits for the next one.
      let rest: Uint8Array = new Uint8Array(0);
      while (!over.signal.aborted) {
        const packets = await feed.next();
        if (packets === undefined || over.signal.aborted) break;
        rate.count(packets.length, clock.now());
        const bytes = new Uint8Array(rest.length + packets.length);
        bytes.set(rest);
        bytes.set(packets, rest.length);
        let at = 0;
        for (; at + DATAGRAM_BYTES <= bytes.length; at += DATAGRAM_BYTES) {
          const payload = bytes.subarray(at, at + DATAGRAM_BYTES);
          const ticks = Math.floor(clock.now() * 90);
          socket.send(isRtp ? writeRtpTs(payload, sequence++, ticks) : payload, address);
        }
        rest = bytes.subarray(at);
      }
    } finally {
      feed?.close();
      socket.close();
    }
  };
  run()
    .catch((error: unknown) => {
      if (!over.signal.aborted) log.warn("the tuner cannot send a channel", { reason: messageOf(error) });
    })
    .finally(() => {
      if (!over.signal.aborted) ended();
    });
  return {
    get bitsPerSecond() {
      return 8 * rate.bytes(clock.now());
    },
    get packetsPerSecond() {
      return Math.round(rate.bytes(clock.now()) / DATAGRAM_BYTES);
    },
    stop: () => over.abort(),
  };
}

/** Counts the bytes of the last whole second. */
class SecondRate {
  #since: Instant | undefined;
  #current = 0;
  #last = 0;

  count(bytes: number, now: Instant): void {
    this.bytes(now);
    this.#current += bytes;
  }

  bytes(now: Instant): number {
    if (this.#since === undefined || after(this.#since, 2 * SECOND_MS) <= now)
      [this.#since, this.#last, this.#current] = [now, 0, 0];
    else if (after(this.#since, SECOND_MS) <= now)
      [this.#since, this.#last, this.#current] = [after(this.#since, SECOND_MS), this.#current, 0];
    return this.#last;
  }
}
