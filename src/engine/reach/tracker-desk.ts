import type { PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Runtime, TextSocket } from "../../runtime/contract.ts";
import { OfferRelay } from "../../swarm/tracker/offer-relay.ts";
import { type Refusal, Tracker } from "../../swarm/tracker/tracker.ts";
import {
  decodeHttpQuestion,
  decodeHttpScrapeQuestion,
  encodeHttpAnswer,
  encodeHttpRefusal,
  encodeHttpScrapeAnswer,
} from "../../wire/tracker-server-http.ts";
import type { ReachSettings, SharedUdp, TrackerDesk } from "./contract.ts";
import { ownPlaces } from "./tracker-places.ts";
import { serveUdpTracker } from "./tracker-udp-desk.ts";

/** What our own tracker is made of. */
export interface TrackerDeskParts {
  readonly runtime: Pick<Runtime, "clock" | "sha256" | "randomBytes" | "surroundings">;
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly mode: Exclude<ReachSettings["tracker"], "off">;
  /** Whether content is open here that others may be told of: not what is private (BEP 27). */
  readonly isShared: (infohash: Infohash) => boolean;
  /** Where our peers listen, the wildcard or an address; the port is 0 for as long as nothing does. */
  readonly listening: () => PeerAddress;
  /** Where the router lets the Internet in to them, if it says so. */
  readonly outside: () => PeerAddress | undefined;
  readonly random: Random;
}

/** Opens our own tracker: it answers on the UDP port from now on, and whoever comes to the desk. */
export function openTrackerDesk(parts: TrackerDeskParts): TrackerDesk {
  const { runtime, udp, mode, isShared, random } = parts;
  const { clock } = runtime;
  const isTracked = (infohash: Infohash) => mode === "open" || isShared(infohash);
  const places = () => ({
    listening: parts.listening(),
    networks: runtime.surroundings.networks(),
    outside: parts.outside(),
  });
  const tracker = new Tracker({
    isTracked,
    ownPlaces: (infohash, asker) => (isShared(infohash) ? ownPlaces(places(), asker) : []),
    random,
  });
  serveUdpTracker({ udp, tracker, runtime });
  const sockets = new Sockets(new OfferRelay(tracker, isTracked, random), clock);
  return {
    isOpen: mode === "open",
    announce: (query, asker) =>
      answered(() => {
        const question = decodeHttpQuestion(query);
        const now = clock.now();
        const answer = tracker.admits(asker, now) ?? tracker.announce(question, asker, now);
        return "refused" in answer ? refusal(answer) : encodeHttpAnswer(answer, asker.host);
      }),
    scrape: (query, asker) =>
      answered(() => {
        const infohashes = decodeHttpScrapeQuestion(query);
        const now = clock.now();
        const refused = tracker.admits(asker, now);
        if (refused) return refusal(refused);
        return encodeHttpScrapeAnswer(infohashes.map((each) => [each, tracker.counts(each, now)]));
      }),
    join: (asker, socket) => sockets.join(asker, socket),
  };
}

function refusal({ refused, retryMinutes }: Refusal): Uint8Array<ArrayBuffer> {
  return encodeHttpRefusal(refused, retryMinutes);
}

/** A question that cannot be read is answered too, in words: programs show them. */
function answered(answer: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  try {
    return answer();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return encodeHttpRefusal(thrown.message, "never");
  }
}

/** The WebSockets of a relay. */
class Sockets {
  readonly #relay: OfferRelay;
  readonly #clock: Pick<Runtime["clock"], "now">;
  readonly #sockets = new Map<number, TextSocket>();
  #nextId = 0;

  constructor(relay: OfferRelay, clock: Pick<Runtime["clock"], "now">) {
    this.#relay = relay;
    this.#clock = clock;
  }

  join(asker: Parameters<TrackerDesk["join"]>[0], socket: TextSocket): ReturnType<TrackerDesk["join"]> {
    const id = this.#nextId++;
    if (this.#relay.opened(id, asker)) this.#sockets.set(id, socket);
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
