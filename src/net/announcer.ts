import { Slots } from "../async/slots.ts";
import {
  type AddressScope,
  addressScope,
  canonicalAddress,
  familyOf,
  type PeerAddress,
} from "../base/address.ts";
import { DecodeError, messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { type Deadline, startDeadline } from "../outbound/deadline.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { OutboundOptions } from "../outbound/request.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker/announce.ts";
import {
  decodeHttpAnnounce,
  decodeHttpScrape,
  httpAnnounceUrl,
  httpScrapeUrl,
  MAX_TRACKER_REPLY_BYTES,
} from "../wire/tracker/http.ts";
import { trackerScheme, trackerUrlProblem } from "../wire/tracker/url.ts";
import { type AnnounceOverFamily, announceFamilies, FailedFamilies } from "./announce-families.ts";
import type { WebRtcSignaling } from "./contract.ts";
import { createUdpTrackers } from "./udp-tracker-client.ts";
import { createWsTrackers, type WsTrackersRuntime } from "./ws-tracker-client.ts";

/** Sends announces and scrapes to trackers over HTTP, UDP and WebSocket. */
export interface Announcer {
  /** Never rejects: an error is the reply's `reason`. */
  announce(request: AnnounceRequest, options?: TrackerOptions): Promise<AnnounceReply>;
  /** Asks for the size of a swarm (BEP 15, 48). Never rejects; undefined if the tracker does not report it. */
  scrape(url: string, infohash: Infohash, options?: TrackerOptions): Promise<SwarmCounts | undefined>;
  /** Closes UDP sockets and WebSockets. Pending UDP announces end with their timeout. */
  close(): void;
}

export interface TrackerOptions {
  readonly signal?: AbortSignal | undefined;
  /** True if the tracker may have a loopback or private address; default false. Only such a tracker may return local peers. */
  readonly allowPrivate?: boolean;
}

type AnnouncerRuntime = Pick<Runtime, "net" | "clock" | "randomBytes" | "lookup"> & WsTrackersRuntime;

/** Concurrent announces, as in libtorrent. */
const MAX_CONCURRENT = 50;
/** Queued announces; more means that a caller announces in a loop. */
const MAX_QUEUED = 500;
const HTTP_TIMEOUT_MS = 20_000;
/** For DNS, connection and announce together; UDP sends each request up to three times. */
const UDP_TIMEOUT_MS = 60_000;
/** A machine has few public addresses; a faulty tracker must not fill the log. */
const MAX_LOGGED_ADDRESSES = 8;

/** Creates the announcer; with `webrtc`, WebSocket trackers introduce WebRTC peers. */
export function createAnnouncer(
  runtime: AnnouncerRuntime,
  outbound: Pick<Outbound, "get">,
  log: Log,
  webrtc?: WebRtcSignaling,
): Announcer {
  const udp = createUdpTrackers(runtime);
  const sockets = createWsTrackers(runtime, webrtc);
  const slots = new Slots({
    limit: MAX_CONCURRENT,
    queueLimit: MAX_QUEUED,
    queueFull: () => new Error("too many concurrent announces"),
  });
  const loggedAddresses = new Set<string>();
  /** Logs each address once; every reply contains it (BEP 24). */
  const logAddress = (address: string, tracker: string) => {
    if (loggedAddresses.has(address) || loggedAddresses.size >= MAX_LOGGED_ADDRESSES) return;
    loggedAddresses.add(address);
    log.info("public address seen by trackers", { address, tracker });
  };
  const failed = new FailedFamilies(runtime.clock);
  const announceTo = async (request: AnnounceRequest, deadline: Deadline, allowPrivate: boolean) => {
    if (isWebSocket(request.url))
      return tryEach(runtime, request.url, deadline, allowPrivate, async ({ host }) =>
        onlyPermittedPeers(host, await sockets.announce(host, request, deadline.signal)),
      );
    const { name, port, addresses } = await resolveTracker(runtime, request.url, deadline, allowPrivate);
    const overFamily =
      (host: string): AnnounceOverFamily =>
      async (signal) => {
        const reply =
          trackerScheme(request.url) === "udp"
            ? udp.announce({ host, port }, request, signal)
            : announceHttp(outbound, request, { family: familyOf(host), signal, allowPrivate });
        return onlyPermittedPeers(host, await reply);
      };
    const asks = failed.without(name, addresses).map((host) => [host, overFamily(host)] as const);
    return announceFamilies(runtime.clock, asks, deadline.signal, (host) => {
      // IPv4 is always tried, because most peers use it.
      if (familyOf(host) === 6) failed.add(name, host);
    });
  };
  const scrapeFrom = (
    url: string,
    infohash: Infohash,
    deadline: Deadline,
    allowPrivate: boolean,
  ): Promise<SwarmCounts | undefined> => {
    const { signal } = deadline;
    const each = (ask: (to: PeerAddress) => Promise<SwarmCounts | undefined>) =>
      tryEach(runtime, url, deadline, allowPrivate, ask);
    if (trackerScheme(url) === "udp") return each((to) => udp.scrape(to, infohash, signal));
    if (isWebSocket(url)) return each(({ host }) => sockets.scrape(host, url, infohash, signal));
    return scrapeHttp(outbound, url, infohash, { allowPrivate, signal });
  };
  return {
    async announce(request, { signal, allowPrivate = false } = {}) {
      const target = { url: request.url, signal };
      const reply = await withSlot(runtime, slots, target, (deadline) =>
        announceTo(request, deadline, allowPrivate),
      ).catch((thrown: unknown) => ({ ok: false as const, reason: messageOf(thrown) }));
      // Host only: paths and queries of private trackers are secrets.
      const tracker = hostOf(request.url);
      if (reply.ok) log.debug("tracker answered", { tracker, peers: reply.peers.length });
      else log.debug("tracker failed", { tracker, reason: reply.reason });
      if (reply.ok && reply.warning !== undefined)
        log.warn("warning from the tracker", { tracker, warning: reply.warning });
      if (reply.ok && reply.externalAddress !== undefined) logAddress(reply.externalAddress, tracker);
      return reply;
    },
    async scrape(url, infohash, { signal, allowPrivate = false } = {}) {
      const tracker = hostOf(url);
      try {
        const counts = await withSlot(runtime, slots, { url, signal }, (deadline) =>
          scrapeFrom(url, infohash, deadline, allowPrivate),
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

/**
 * Wraps an announcer so that it announces the external port, which can differ from the local one. A tracker at a private
 * address gets the local port, because its peers are in the local network as well.
 */
export function announcingExternalPort(announcer: Announcer, externalPort: () => number): Announcer {
  return {
    announce(request, options) {
      const port = request.port > 0 && !isLocalTracker(request.url) ? externalPort() : request.port;
      return announcer.announce({ ...request, port }, options);
    },
    scrape: (url, infohash, options) => announcer.scrape(url, infohash, options),
    close: () => announcer.close(),
  };
}

function isLocalTracker(url: string): boolean {
  // Runtimes parse only http URLs in the same way; the host syntax of the other schemes is the same.
  const asHttp = url.replace(/^[a-z]+:/i, "http:");
  if (!URL.canParse(asHttp)) return false;
  const host = new URL(asHttp).hostname.replace(/^\[|\]$/g, "");
  if (host === "localhost") return true;
  return /^[\d.]+$|:/.test(host) && addressScope(host) !== "global";
}

/** Runs `ask` when a slot is free, with the timeout of the tracker's protocol. */
async function withSlot<T>(
  runtime: AnnouncerRuntime,
  slots: Slots,
  { url, signal }: { readonly url: string; readonly signal: AbortSignal | undefined },
  ask: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const problem = trackerUrlProblem(url);
  if (problem !== undefined) throw new Error(problem);
  const release = await slots.take(signal);
  const timeoutMs = trackerScheme(url) === "udp" ? UDP_TIMEOUT_MS : HTTP_TIMEOUT_MS;
  const deadline = startDeadline(runtime.clock, timeoutMs, signal);
  try {
    deadline.signal.throwIfAborted();
    return await ask(deadline);
  } finally {
    deadline.end();
    release();
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
  check: localProblem,
} as const;

/** Protects other services of this machine and its network from URLs in untrusted links: there, only typical tracker paths are
 * allowed (libtorrent has this rule for loopback). */
function localProblem({ pathname }: { pathname: string }, scope: AddressScope): string | undefined {
  if (scope === "global" || /^\/(announce|scrape)/.test(pathname)) return undefined;
  return "a tracker on this machine or in its network must have the path /announce";
}

/** Tries the addresses of a tracker in order until one succeeds. */
async function tryEach<T>(
  runtime: AnnouncerRuntime,
  url: string,
  deadline: Deadline,
  allowPrivate: boolean,
  ask: (address: PeerAddress) => Promise<T>,
): Promise<T> {
  let failure: unknown;
  const { addresses, port } = await resolveTracker(runtime, url, deadline, allowPrivate);
  for (const host of addresses) {
    try {
      const problem = isWebSocket(url) && localProblem(new URL(url), addressScope(host));
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

/** Removes local peers unless the tracker at `host` is local itself: a public tracker must not direct us to devices in the local
 * network. */
function onlyPermittedPeers(host: string, reply: AnnounceReply): AnnounceReply {
  if (!reply.ok || addressScope(host) !== "global") return reply;
  return { ...reply, peers: reply.peers.filter(({ host }) => addressScope(host) === "global") };
}

function hostOf(url: string): string {
  return /^[a-z]+:\/\/([^/?#@]+)/i.exec(url)?.[1] ?? "?";
}

/** The resolved host of a tracker URL. */
interface TrackerHost {
  readonly name: string;
  /** 0 if the URL has none. */
  readonly port: number;
  /** One address of each IP version; IPv4 first, because more peers use it. */
  readonly addresses: readonly string[];
}

/** Resolves the host of a tracker URL. Rejects if the URL is malformed or the host has no usable address, or, unless
 * `allowPrivate`, a loopback, private or link-local one. */
async function resolveTracker(
  runtime: Pick<Runtime, "lookup">,
  url: string,
  deadline: Deadline,
  allowPrivate: boolean,
): Promise<TrackerHost> {
  const { name, port } = hostAndPort(url);
  const literal = canonicalAddress(name);
  const found = literal === undefined ? await deadline.race(runtime.lookup(name)) : [literal];
  const usable = found.filter(isUsable);
  const nonPublic = usable.find((address) => addressScope(address) !== "global");
  if (nonPublic !== undefined && !allowPrivate)
    throw new Error(`${name} is not allowed: ${nonPublic} is a ${addressScope(nonPublic)} address`);
  if (usable.length === 0) throw new Error(`${name} has no usable address`);
  const first = (family: 4 | 6) => usable.filter((host) => familyOf(host) === family).slice(0, 1);
  return { name, port, addresses: [...first(4), ...first(6)] };
}

/** Only `udp:` URLs must have a port. */
function hostAndPort(url: string): { name: string; port: number } {
  const pattern = /^[a-z]+:\/\/(?:[^/?#@]*@)?(?:\[([0-9a-f:.%]+)\]|([^/?#:[\]]+))(?::(\d{1,5}))?(?:[/?#]|$)/i;
  const match = pattern.exec(url);
  const port = Number(match?.[3] ?? 0);
  const isUdp = trackerScheme(url) === "udp";
  if (!match || port > 65535 || (isUdp && port === 0))
    throw new Error(isUdp ? "expected udp://host:port" : "expected an HTTP or WebSocket URL");
  return { name: match[1] ?? match[2]!, port };
}

function isUsable(address: string): boolean {
  const scope = addressScope(address);
  return scope !== "multicast" && scope !== "unspecified";
}
