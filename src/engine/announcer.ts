import { type AddressScope, addressScope, familyOf, type PeerAddress } from "../base/address.ts";
import { DecodeError, messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { type Deadline, startDeadline } from "../outbound/deadline.ts";
import type { Outbound, OutboundOptions } from "../outbound/outbound.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker.ts";
import {
  decodeHttpAnnounce,
  decodeHttpScrape,
  httpAnnounceUrl,
  httpScrapeUrl,
  MAX_TRACKER_REPLY_BYTES,
} from "../wire/tracker-http.ts";
import { trackerScheme, trackerUrlProblem } from "../wire/tracker-url.ts";
import { type AskFamily, askFamilies, SilentFamilies } from "./announce-families.ts";
import { createTrackerSockets, type TrackerSocketsRuntime } from "./reach/tracker-sockets.ts";
import { findTracker } from "./tracker-addresses.ts";
import { createUdpTrackers } from "./udp-tracker.ts";

/** Carries announces to trackers, of any kind, and brings back what they say. */
export interface Announcer {
  /** Never rejects: what goes wrong is the reply's `reason`. */
  announce(request: AnnounceRequest, options?: TrackerOptions): Promise<AnnounceReply>;
  /** Asks how large a swarm is (BEP 15, 48). Never rejects: undefined where the tracker does not tell. */
  scrape(url: string, infohash: Infohash, options?: TrackerOptions): Promise<SwarmCounts | undefined>;
  /** Closes UDP sockets and WebSockets; announces on their way over UDP end by their time-out. */
  close(): void;
}

/** How a tracker is asked. */
export interface TrackerOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether it may be at a loopback or private address, and name peers there; not unless said. */
  readonly allowPrivate?: boolean;
}

type Parts = Pick<Runtime, "net" | "clock" | "randomBytes" | "lookup"> & TrackerSocketsRuntime;

/** Announces at once (libtorrent: the same). */
const MAX_AT_ONCE = 50;
/** Announces that wait for their turn; more means that something announces in a loop. */
const MAX_WAITING = 500;
/** A web server that does not answer by then will not. */
const HTTP_TIMEOUT_MS = 20_000;
/** Names, connection and announce together; UDP tries three times each. */
const UDP_TIMEOUT_MS = 60_000;
/** A machine has an address or two; a tracker that invents them shall not fill the log. */
const MAX_TOLD_ADDRESSES = 8;

/** The announcer of this machine. */
export function createAnnouncer(runtime: Parts, outbound: Pick<Outbound, "get">, log: Log): Announcer {
  const udp = createUdpTrackers(runtime);
  const sockets = createTrackerSockets(runtime);
  const turns = new Turns();
  const told = new Set<string>();
  /** Once for each address, as every tracker says it again and again (BEP 24). */
  const tellAddress = (address: string, tracker: string) => {
    if (told.has(address) || told.size >= MAX_TOLD_ADDRESSES) return;
    told.add(address);
    log.info("trackers see us at", { address, tracker });
  };
  const silent = new SilentFamilies(runtime.clock);
  const ask = async (request: AnnounceRequest, deadline: Deadline, allowPrivate: boolean) => {
    if (isWebSocket(request.url))
      return askEach(runtime, request.url, deadline, allowPrivate, ({ host }) =>
        sockets.announce(host, request, deadline.signal),
      );
    const { name, port, addresses } = await findTracker(runtime, request.url, deadline, allowPrivate);
    const overFamily = (host: string): AskFamily =>
      trackerScheme(request.url) === "udp"
        ? (signal) => udp.announce({ host, port }, request, signal)
        : (signal) => announceHttp(outbound, request, { family: familyOf(host), signal, allowPrivate });
    const asks = silent.without(name, addresses).map((host) => [host, overFamily(host)] as const);
    return askFamilies(runtime.clock, asks, deadline.signal, (host) => {
      // IPv4 is where most peers are: it is asked each time.
      if (familyOf(host) === 6) silent.add(name, host);
    });
  };
  const scrapeBy = (
    url: string,
    infohash: Infohash,
    deadline: Deadline,
    allowPrivate: boolean,
  ): Promise<SwarmCounts | undefined> => {
    const { signal } = deadline;
    const each = (ask: (to: PeerAddress) => Promise<SwarmCounts | undefined>) =>
      askEach(runtime, url, deadline, allowPrivate, ask);
    if (trackerScheme(url) === "udp") return each((to) => udp.scrape(to, infohash, signal));
    if (isWebSocket(url)) return each(({ host }) => sockets.scrape(host, url, infohash, signal));
    return scrapeHttp(outbound, url, infohash, { allowPrivate, signal });
  };
  return {
    async announce(request, { signal, allowPrivate = false } = {}) {
      const turn = { url: request.url, signal };
      const heard = await inTurn(runtime, turns, turn, (deadline) =>
        ask(request, deadline, allowPrivate),
      ).catch((thrown: unknown) => ({ ok: false as const, reason: messageOf(thrown) }));
      const reply = allowPrivate ? heard : withoutHomePeers(heard);
      // The host alone: paths and queries of private trackers are secrets.
      const tracker = hostOf(request.url);
      if (reply.ok) log.debug("tracker answered", { tracker, peers: reply.peers.length });
      else log.debug("tracker failed", { tracker, reason: reply.reason });
      if (reply.ok && reply.warning !== undefined)
        log.warn("tracker warns", { tracker, warning: reply.warning });
      if (reply.ok && reply.externalAddress !== undefined) tellAddress(reply.externalAddress, tracker);
      return reply;
    },
    async scrape(url, infohash, { signal, allowPrivate = false } = {}) {
      const tracker = hostOf(url);
      try {
        const counts = await inTurn(runtime, turns, { url, signal }, (deadline) =>
          scrapeBy(url, infohash, deadline, allowPrivate),
        );
        log.debug("tracker scraped", { tracker, seeders: counts?.seeders, leechers: counts?.leechers });
        return counts;
      } catch (thrown) {
        log.debug("scrape failed", { tracker, reason: messageOf(thrown) });
        return undefined;
      }
    },
    close() {
      udp.close();
      sockets.close();
    },
  };
}

/** Asks when there is room, within the time that the tracker's kind has. Rejects with what went wrong. */
async function inTurn<T>(
  runtime: Parts,
  turns: Turns,
  { url, signal }: { readonly url: string; readonly signal: AbortSignal | undefined },
  ask: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const problem = trackerUrlProblem(url);
  if (problem !== undefined) throw new Error(problem);
  if (!(await turns.take())) throw new Error("too many announces at once");
  const timeoutMs = trackerScheme(url) === "udp" ? UDP_TIMEOUT_MS : HTTP_TIMEOUT_MS;
  const deadline = startDeadline(runtime.clock, timeoutMs, signal);
  try {
    deadline.signal.throwIfAborted();
    return await ask(deadline);
  } finally {
    deadline.end();
    turns.give();
  }
}

async function announceHttp(
  outbound: Pick<Outbound, "get">,
  request: AnnounceRequest,
  options: Pick<OutboundOptions, "family" | "signal" | "allowPrivate">,
): Promise<AnnounceReply> {
  const answer = await outbound.get(httpAnnounceUrl(request), { ...HTTP_OPTIONS, ...options });
  const status = answer.status;
  try {
    const reply = decodeHttpAnnounce(answer.bytes);
    return status === 200 || !reply.ok
      ? reply
      : { ok: false, reason: `the tracker answered with status ${status}` };
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return {
      ok: false,
      reason: status === 200 ? thrown.message : `the tracker answered with status ${status}`,
    };
  }
}

async function scrapeHttp(
  outbound: Pick<Outbound, "get">,
  announceUrl: string,
  infohash: Infohash,
  options: Pick<OutboundOptions, "signal" | "allowPrivate">,
): Promise<SwarmCounts | undefined> {
  const url = httpScrapeUrl(announceUrl, infohash);
  if (url === undefined) return undefined;
  const { status, bytes } = await outbound.get(url, { ...HTTP_OPTIONS, ...options });
  if (status !== 200) throw new Error(`the tracker answered with status ${status}`);
  return decodeHttpScrape(bytes, infohash);
}

const HTTP_OPTIONS = {
  limitBytes: MAX_TRACKER_REPLY_BYTES,
  timeoutMs: HTTP_TIMEOUT_MS,
  purpose: "tracker's answer",
  check: loopbackProblem,
} as const;

/** Links are pasted from anywhere, so what else runs on this machine is kept from them: only what looks like a tracker is
 * asked (as libtorrent does). */
function loopbackProblem({ pathname }: { pathname: string }, scope: AddressScope): string | undefined {
  if (scope !== "loopback" || /^\/(announce|scrape)/.test(pathname)) return undefined;
  return "a tracker on this machine must have the path /announce";
}

/** Asks the addresses of a tracker in turn, until one answers. */
async function askEach<T>(
  runtime: Parts,
  url: string,
  deadline: Deadline,
  allowPrivate: boolean,
  ask: (address: PeerAddress) => Promise<T>,
): Promise<T> {
  let failure: unknown;
  const { addresses, port } = await findTracker(runtime, url, deadline, allowPrivate);
  for (const host of addresses) {
    try {
      const problem = isWebSocket(url) && loopbackProblem(new URL(url), addressScope(host));
      if (problem) throw new Error(problem);
      return await ask({ host, port });
    } catch (thrown) {
      deadline.signal.throwIfAborted();
      failure = thrown;
    }
  }
  throw failure;
}

function isWebSocket(url: string): boolean {
  return /^wss?$/.test(trackerScheme(url));
}

/** A tracker out there must not point us at routers and printers in here. */
function withoutHomePeers(reply: AnnounceReply): AnnounceReply {
  if (!reply.ok) return reply;
  return { ...reply, peers: reply.peers.filter(({ host }) => addressScope(host) === "global") };
}

function hostOf(url: string): string {
  return /^[a-z]+:\/\/([^/?#@]+)/i.exec(url)?.[1] ?? "?";
}

/** At most so many at once; the others wait in line. */
class Turns {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** Waits for a turn; false where the line is too long. */
  async take(): Promise<boolean> {
    if (this.#running < MAX_AT_ONCE) {
      this.#running++;
      return true;
    }
    if (this.#waiting.length >= MAX_WAITING) return false;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return true;
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running--;
  }
}
