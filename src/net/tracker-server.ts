import { addressScope, familyOf, type PeerAddress } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { OfferRelay } from "../protocol/tracker/offer-relay.ts";
import { type Refusal, Tracker } from "../protocol/tracker/tracker.ts";
import { reachOf, type TrackerClient } from "../protocol/tracker/visibility.ts";
import type { OwnNetwork, Runtime, TextSocket } from "../runtime/contract.ts";
import {
  decodeHttpAnnounceRequest,
  decodeHttpScrapeRequest,
  encodeHttpAnnounceResponse,
  encodeHttpFailure,
  encodeHttpScrapeResponse,
} from "../wire/tracker/server-http.ts";
import type { ReachSettings, SharedUdp, TrackerServer } from "./contract.ts";
import { serveUdpTracker } from "./udp-tracker-server.ts";

export interface TrackerServerDependencies {
  readonly runtime: Pick<Runtime, "clock" | "sha256" | "randomBytes" | "surroundings">;
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly mode: Exclude<ReachSettings["tracker"], "off">;
  /** Returns true if the content is open here and known not to be private (BEP 27). */
  readonly isShared: (infohash: Infohash) => boolean;
  /** Returns the address (or wildcard) and port on which the engine accepts peers; port 0: none yet. */
  readonly listening: () => PeerAddress;
  /** Returns the external address and port that the router forwards, if known. */
  readonly external: () => PeerAddress | undefined;
  readonly random: Random;
}

/** Starts the built-in tracker. It answers UDP requests on `udp`, and HTTP and WebSocket requests through its methods. */
export function openTrackerServer(dependencies: TrackerServerDependencies): TrackerServer {
  const { runtime, udp, mode, isShared, random } = dependencies;
  const { clock } = runtime;
  const isTracked = (infohash: Infohash) => mode === "open" || isShared(infohash);
  const ownAddressInputs = () => ({
    listening: dependencies.listening(),
    networks: runtime.surroundings.networks(),
    external: dependencies.external(),
  });
  const tracker = new Tracker({
    isTracked,
    ownAddresses: (infohash, client) => (isShared(infohash) ? ownAddresses(ownAddressInputs(), client) : []),
    random,
  });
  serveUdpTracker({ udp, tracker, runtime });
  const sockets = new RelaySockets(new OfferRelay(tracker, isTracked, random), clock);
  return {
    isOpen: mode === "open",
    announce: (query, client) =>
      respond(() => {
        const request = decodeHttpAnnounceRequest(query);
        const now = clock.now();
        const result = tracker.admits(client, now) ?? tracker.announce(request, client, now);
        return "refused" in result ? refusal(result) : encodeHttpAnnounceResponse(result, client.host);
      }),
    scrape: (query, client) =>
      respond(() => {
        const infohashes = decodeHttpScrapeRequest(query);
        const now = clock.now();
        const refused = tracker.admits(client, now);
        if (refused) return refusal(refused);
        return encodeHttpScrapeResponse(infohashes.map((each) => [each, tracker.counts(each, now)]));
      }),
    join: (client, socket) => sockets.join(client, socket),
  };
}

function refusal({ refused, retryMinutes }: Refusal): Uint8Array<ArrayBuffer> {
  return encodeHttpFailure(refused, retryMinutes);
}

/** Malformed requests get a failure response with a text, which BitTorrent clients display. */
function respond(handle: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  try {
    return handle();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return encodeHttpFailure(thrown.message, "never");
  }
}

/** Connects WebSockets to the offer relay. */
class RelaySockets {
  readonly #relay: OfferRelay;
  readonly #clock: Pick<Runtime["clock"], "now">;
  readonly #sockets = new Map<number, TextSocket>();
  #nextId = 0;

  constructor(relay: OfferRelay, clock: Pick<Runtime["clock"], "now">) {
    this.#relay = relay;
    this.#clock = clock;
  }

  join(client: Parameters<TrackerServer["join"]>[0], socket: TextSocket): ReturnType<TrackerServer["join"]> {
    const id = this.#nextId++;
    if (this.#relay.opened(id, client)) this.#sockets.set(id, socket);
    else socket.close();
    return {
      received: (text) => {
        this.#relay.received(id, text, this.#clock.now());
        this.#flush();
      },
      closed: () => {
        this.#sockets.delete(id);
        this.#relay.closed(id);
      },
    };
  }

  #flush(): void {
    for (let output = this.#relay.poll(); output; output = this.#relay.poll()) {
      const socket = this.#sockets.get(output.to);
      if (output.kind === "send") socket?.send(output.text);
      else socket?.close();
    }
  }
}

/** A machine has one or two addresses of each IP version; more are bridges of containers. */
const MAX_OWN_ADDRESSES = 4;

interface OwnAddressInputs {
  /** The address (or wildcard) and port on which the engine accepts peers; port 0: none yet. */
  readonly listening: PeerAddress;
  readonly networks: readonly Pick<OwnNetwork, "host" | "isLoopback">[];
  /** The external address and port that the router forwards, if known. */
  readonly external: PeerAddress | undefined;
}

/**
 * Returns the addresses of this engine for a client of the tracker: loopback for a client on this machine, otherwise the
 * addresses of this machine, preceded by the router's external address if the client is on the Internet.
 */
function ownAddresses(
  { listening, networks, external }: OwnAddressInputs,
  client: TrackerClient,
): PeerAddress[] {
  const { host, port } = listening;
  if (port === 0) return [];
  if (addressScope(host) !== "unspecified") return [{ host, port }];
  if (reachOf(client.host) === "machine")
    return [{ host: familyOf(client.host) === 6 && host === "::" ? "::1" : "127.0.0.1", port }];
  const isRemote = client.isForeign || reachOf(client.host) === "internet";
  const atRouter = isRemote && external ? [external] : [];
  const local = networks
    .filter((network) => !network.isLoopback && addressScope(network.host) !== "link-local")
    .filter((network) => host === "::" || familyOf(network.host) === 4)
    .map((network) => ({ host: network.host, port }));
  return [...atRouter, ...local].slice(0, MAX_OWN_ADDRESSES);
}
