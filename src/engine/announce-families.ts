import { addressText, type PeerAddress } from "../base/address.ts";
import { messageOf } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import { eitherSignal } from "../remux/either-signal.ts";
import type { Clock } from "../runtime/contract.ts";
import type { AnnounceReply } from "../wire/tracker.ts";

/** So long a good reply waits for that of the other IP version: the peers are wanted now. */
const NEAR_MS = 500;
/** An address that was silent is left alone so long: about as long as until the next announce. */
const SILENT_MS = 30 * 60_000;
/** Silent addresses that are remembered. */
const MAX_SILENT = 200;

/** An announce over one IP version. */
export type AskFamily = (signal: AbortSignal) => Promise<AnnounceReply>;

/**
 * Announces over both IP versions at once (BEP 7), since a tracker gives each its own peers and knows us by the address
 * that it sees. One reply comes of it: the peers of both where both are quick, else what came first and well; where
 * neither is well, the first one's reason. What is late is ended. `silent` hears of each address that gave nothing where
 * another did.
 */
export async function askFamilies(
  clock: Clock,
  asks: readonly (readonly [address: string, ask: AskFamily])[],
  signal: AbortSignal,
  silent: (address: string) => void,
): Promise<AnnounceReply> {
  const late = new AbortController();
  const replies = new Map<string, AnnounceReply>();
  const both = eitherSignal(signal, late.signal);
  await new Promise<void>((resolve) => {
    let cancel: (() => void) | undefined;
    for (const [address, ask] of asks) {
      const heard = (reply: AnnounceReply) => {
        replies.set(address, reply);
        if (reply.ok) cancel ??= clock.at(after(clock.now(), NEAR_MS), resolve);
        if (replies.size < asks.length) return;
        cancel?.();
        resolve();
      };
      ask(both.signal).then(heard, (thrown: unknown) => heard({ ok: false, reason: messageOf(thrown) }));
    }
  });
  const first = asks.flatMap(([address]) => replies.get(address) ?? []);
  const good = first.filter((reply) => reply.ok);
  late.abort(new Error("the other IP version was quicker"));
  both.release();
  if (good.length === 0) return first[0]!;
  for (const [address] of asks) if (!replies.get(address)?.ok) silent(address);
  return merged(good);
}

/** Addresses of trackers that gave nothing while another address of the same tracker did. */
export class SilentFamilies {
  readonly #clock: Clock;
  readonly #until = new Map<string, Instant>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The addresses that may be asked; a tracker's only one always may. */
  without(tracker: string, addresses: readonly string[]): readonly string[] {
    const isSilent = (address: string) => (this.#until.get(`${tracker} ${address}`) ?? 0) > this.#clock.now();
    return addresses.length === 1 ? addresses : addresses.filter((address) => !isSilent(address));
  }

  add(tracker: string, address: string): void {
    this.#until.delete(`${tracker} ${address}`);
    this.#until.set(`${tracker} ${address}`, after(this.#clock.now(), SILENT_MS));
    for (const oldest of this.#until.keys()) {
      if (this.#until.size <= MAX_SILENT) return;
      this.#until.delete(oldest);
    }
  }
}

/** One reply of several: all peers, once each; the longest interval, for it holds for both. */
function merged(replies: readonly (AnnounceReply & { ok: true })[]): AnnounceReply {
  if (replies.length === 1) return replies[0]!;
  const peers = new Map<string, PeerAddress>();
  for (const reply of replies) for (const peer of reply.peers) peers.set(addressText(peer), peer);
  const intervalSeconds = Math.max(...replies.map((reply) => reply.intervalSeconds));
  return { ...replies[0]!, peers: [...peers.values()], intervalSeconds };
}
