import { linkedAbort } from "../async/abort.ts";
import { addressText, type PeerAddress } from "../base/address.ts";
import { messageOf } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { Clock } from "../runtime/contract.ts";
import type { AnnounceReply } from "../wire/tracker/announce.ts";

/** After the first good reply, wait this long for the other IP version. */
const OTHER_FAMILY_MS = 500;
/** A failed address is skipped for this time, about one announce interval. */
const SKIP_MS = 30 * 60_000;
/** Remembered failed addresses. */
const MAX_FAILED = 200;

/** An announce over one IP version. */
export type AnnounceOverFamily = (signal: AbortSignal) => Promise<AnnounceReply>;

/**
 * Announces over both IP versions at once (BEP 7): a tracker identifies us by the source address and returns peers of that IP
 * version. Resolves to one reply: the peers of both if both succeed in time, otherwise the successful reply, otherwise the
 * first error. A late request is aborted. `failed` is called with each address that failed while another succeeded.
 */
export async function announceFamilies(
  clock: Clock,
  asks: readonly (readonly [address: string, ask: AnnounceOverFamily])[],
  signal: AbortSignal,
  failed: (address: string) => void,
): Promise<AnnounceReply> {
  const replies = new Map<string, AnnounceReply>();
  const asking = linkedAbort(signal);
  await new Promise<void>((resolve) => {
    let cancel: (() => void) | undefined;
    for (const [address, ask] of asks) {
      const received = (reply: AnnounceReply) => {
        replies.set(address, reply);
        if (reply.ok) cancel ??= clock.at(after(clock.now(), OTHER_FAMILY_MS), resolve);
        if (replies.size < asks.length) return;
        cancel?.();
        resolve();
      };
      ask(asking.signal).then(received, (thrown: unknown) =>
        received({ ok: false, reason: messageOf(thrown) }),
      );
    }
  });
  const first = asks.flatMap(([address]) => replies.get(address) ?? []);
  const good = first.filter((reply) => reply.ok);
  asking.release();
  asking.abort(new Error("the other IP version replied first"));
  if (good.length === 0) return first[0]!;
  for (const [address] of asks) if (!replies.get(address)?.ok) failed(address);
  return merged(good);
}

/** Addresses of trackers that failed while another address of the same tracker succeeded. */
export class FailedFamilies {
  readonly #clock: Clock;
  readonly #until = new Map<string, Instant>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the addresses to try; a single address is always tried. */
  without(tracker: string, addresses: readonly string[]): readonly string[] {
    const isFailed = (address: string) => (this.#until.get(`${tracker} ${address}`) ?? 0) > this.#clock.now();
    return addresses.length === 1 ? addresses : addresses.filter((address) => !isFailed(address));
  }

  add(tracker: string, address: string): void {
    this.#until.delete(`${tracker} ${address}`);
    this.#until.set(`${tracker} ${address}`, after(this.#clock.now(), SKIP_MS));
    trimOldest(this.#until, MAX_FAILED);
  }
}

/** Merges replies: all distinct peers and the longest interval. */
function merged(replies: readonly (AnnounceReply & { ok: true })[]): AnnounceReply {
  if (replies.length === 1) return replies[0]!;
  const peers = new Map<string, PeerAddress>();
  for (const reply of replies) for (const peer of reply.peers) peers.set(addressText(peer), peer);
  const intervalSeconds = Math.max(...replies.map((reply) => reply.intervalSeconds));
  return { ...replies[0]!, peers: [...peers.values()], intervalSeconds };
}
