import { sleep } from "../../../async/sleep.ts";
import { toHex } from "../../../base/bytes.ts";
import { type Infohash, parseInfohash } from "../../../base/ids.ts";
import type { WebRtcSignaling } from "../../../net/contract.ts";
import { createWsTrackers, type WsTrackersRuntime } from "../../../net/ws-tracker-client.ts";
import { makePeerId } from "../../../wire/peer/peer-id.ts";
import type { Offer } from "../../../wire/tracker/server-ws.ts";
import { CLOCK } from "./page-clock.ts";

/** Connections to pages of other engines, with offers without an answer. */
const MAX_CONNECTIONS = 24;
/** A page that is connected to this many others makes no offers. */
const ENOUGH_PAGES = 8;
const OFFERS = 5;
/** An offer that is not answered within this time is withdrawn, and so is an answer without a connection. */
const SETUP_MS = 50_000;
/** Addresses of the browser are known at once; a STUN server takes some round trips. */
const GATHER_MS = 1_500;
/** Interval of the announces, if the tracker allows it, and of a page that is not connected to any other page. */
const MIN_INTERVAL_MS = 30_000;
const MAX_INTERVAL_MS = 120_000;
const RETRY_MS = 60_000;
/** Longer messages of a tracker are dropped. An offer has at most 10,000 characters, each of which may be escaped. */
const MAX_MESSAGE_LENGTH = 65_536;
/** The browser resolves the names of trackers. */
const UNRESOLVED = "::";

interface IntroductionsOptions {
  readonly trackers: readonly string[];
  readonly infohash: string;
  readonly iceServers: readonly RTCIceServer[];
  /** The number of connected pages. */
  readonly pages: () => number;
  /** Takes over an open channel. `isOurs`: we made the offer, so we send the first handshake. Closing `connection` ends it. */
  adopt(connection: RTCPeerConnection, channel: RTCDataChannel, isOurs: boolean): void;
}

/** Connects this page to pages of other engines, and to engines, through the WebSocket trackers that the broadcaster names. */
export class Introductions implements WebRtcSignaling {
  readonly #options: IntroductionsOptions;
  readonly #offers = new Map<string, RTCPeerConnection>();
  readonly #connections = new Set<RTCPeerConnection>();
  readonly #stopped = new AbortController();

  constructor(options: IntroductionsOptions) {
    this.#options = options;
  }

  /** Announces this page to the trackers until {@link stop} is called. */
  start(): void {
    const infohash = parseInfohash(this.#options.infohash);
    if (infohash === undefined) return;
    const { trackers } = this.#options;
    const client = createWsTrackers({ clock: CLOCK, http: { openWebSocket } }, this);
    const peerId = makePeerId(crypto.getRandomValues(new Uint8Array(20)));
    this.#stopped.signal.addEventListener("abort", () => client.close());
    for (const url of trackers) void this.#announce(client, url, infohash, peerId);
  }

  /** Leaves the trackers, and closes connections that are not open yet. */
  stop(): void {
    this.#stopped.abort();
    for (const connection of [...this.#connections]) this.#close(connection);
  }

  async offers(_: Infohash, __: boolean, count: number): Promise<readonly Offer[]> {
    const free = Math.max(0, MAX_CONNECTIONS - this.#connections.size);
    const made = await Promise.all(Array.from({ length: Math.min(count, free) }, () => this.#offer()));
    return made.flatMap((offer) => offer ?? []);
  }

  async answer(_: Infohash, __: boolean, { id, description }: Offer): Promise<Offer | undefined> {
    if (this.#connections.size >= MAX_CONNECTIONS || this.#stopped.signal.aborted) return undefined;
    const connection = this.#create();
    connection.ondatachannel = ({ channel }) => this.#whenOpen(connection, channel, false);
    return this.#describe(connection, id, async () => {
      await connection.setRemoteDescription(description);
      return connection.createAnswer();
    });
  }

  answered(_: Infohash, { id, description }: Offer): void {
    const connection = this.#offers.get(id);
    this.#offers.delete(id);
    connection?.setRemoteDescription(description).catch(() => this.#close(connection));
  }

  async #announce(
    client: ReturnType<typeof createWsTrackers>,
    url: string,
    infohash: Infohash,
    peerId: Uint8Array,
  ): Promise<void> {
    const { pages } = this.#options;
    const { signal } = this.#stopped;
    let event: "started" | "none" = "started";
    while (!signal.aborted) {
      let waitMs = RETRY_MS;
      try {
        const numWant = Math.max(0, Math.min(OFFERS, ENOUGH_PAGES - pages()));
        const totals = { port: 0, uploaded: 0, downloaded: 0, left: 1, key: 0 };
        const request = { url, infohash, peerId, event, numWant, ...totals };
        const reply = await client.announce(UNRESOLVED, request, signal);
        if (reply.ok) {
          const longestMs = pages() === 0 ? MIN_INTERVAL_MS : MAX_INTERVAL_MS;
          waitMs = Math.min(longestMs, Math.max(MIN_INTERVAL_MS, 1_000 * reply.intervalSeconds));
          event = "none";
        }
      } catch {
        // The tracker is not reachable now.
      }
      await sleep(CLOCK, waitMs, signal);
    }
  }

  async #offer(): Promise<Offer | undefined> {
    const connection = this.#create();
    const id = toHex(crypto.getRandomValues(new Uint8Array(10)));
    this.#offers.set(id, connection);
    this.#whenOpen(connection, connection.createDataChannel(id), true);
    return this.#describe(connection, id, () => connection.createOffer());
  }

  #create(): RTCPeerConnection {
    const connection = new RTCPeerConnection({ iceServers: [...this.#options.iceServers] });
    this.#connections.add(connection);
    const timeout = setTimeout(() => this.#close(connection), SETUP_MS);
    connection.addEventListener("connectionstatechange", () => {
      if (connection.connectionState === "connected") clearTimeout(timeout);
      else if (/failed|closed/.test(connection.connectionState)) this.#close(connection);
    });
    return connection;
  }

  /** Returns the description that `make` makes, with the addresses of this browser; undefined if the browser refuses the other side's. */
  async #describe(
    connection: RTCPeerConnection,
    id: string,
    make: () => Promise<RTCSessionDescriptionInit>,
  ): Promise<Offer | undefined> {
    try {
      await connection.setLocalDescription(await make());
      await gathered(connection);
      const { type, sdp } = connection.localDescription!;
      if (type === "offer" || type === "answer") return { id, description: { type, sdp } };
    } catch {
      // A malformed description, or the page has closed the connection meanwhile.
    }
    this.#close(connection);
    return undefined;
  }

  #whenOpen(connection: RTCPeerConnection, channel: RTCDataChannel, isOurs: boolean): void {
    channel.binaryType = "arraybuffer";
    const opened = () => this.#options.adopt(connection, channel, isOurs);
    if (channel.readyState === "open") opened();
    else channel.addEventListener("open", opened, { once: true });
    channel.addEventListener("close", () => this.#close(connection));
  }

  #close(connection: RTCPeerConnection): void {
    if (!this.#connections.delete(connection)) return;
    for (const [id, each] of this.#offers) if (each === connection) this.#offers.delete(id);
    connection.close();
  }
}

/** Resolves when the browser has found its addresses, or after some time. */
function gathered(connection: RTCPeerConnection): Promise<void> {
  return new Promise((resolve) => {
    const timeout = setTimeout(resolve, GATHER_MS);
    const check = () => {
      if (connection.iceGatheringState !== "complete") return;
      clearTimeout(timeout);
      resolve();
    };
    connection.addEventListener("icegatheringstatechange", check);
    check();
  });
}

const openWebSocket: WsTrackersRuntime["http"]["openWebSocket"] = ({ url, signal }, handlers) =>
  new Promise((resolve, reject) => {
    const web = new WebSocket(url);
    signal?.addEventListener("abort", () => web.close());
    let isOpen = false;
    web.onopen = () => {
      isOpen = true;
      resolve({ send: (text) => web.send(text), close: () => web.close() });
    };
    web.onmessage = ({ data }) => {
      if (typeof data === "string" && data.length <= MAX_MESSAGE_LENGTH) handlers.received(data);
    };
    web.onclose = () => {
      if (isOpen) handlers.closed();
      else reject(new Error("the tracker could not be reached"));
    };
  });
