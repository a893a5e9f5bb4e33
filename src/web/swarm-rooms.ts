import { toHex } from "../base/bytes.ts";
import { HouseholdLimit } from "../base/household-limit.ts";
import type { Infohash } from "../base/ids.ts";
import { householdOf } from "../base/network.ts";
import { shuffle } from "../base/random.ts";
import { TokenBucket } from "../base/rate.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock, TextSocket, TextSocketHandlers } from "../runtime/contract.ts";
import { errorMessage, RELAYED_TYPES, readPeerJsMessage } from "./peerjs-message.ts";

/** Pages at the same time: in all rooms, and of one household (a classroom shares an address). */
const MAX_PAGES = 4_000;
const MAX_HOUSEHOLD_PAGES = 64;
/** A page connects with its id within this time. */
const CONNECT_MS = 30_000;
/** Ids that one answer names: as many as a page needs to find parents for all stripes. */
const MAX_LISTED = 24;
/** Ids and lists that one household may request: 64 pages that look every two seconds. */
const REQUESTS = { perSecond: 40, burst: 200, maxHouseholds: 5_000 };
/** Messages of one page. To connect to another page takes about five, and a page that joins connects to twenty at once. */
const MESSAGES_PER_SECOND = 10;
const MESSAGE_BURST = 400;

/** The pages that watch one stream, by id. */
type Room = Map<string, Page>;

interface Page {
  readonly household: string;
  expiresAt: Instant;
  /** Undefined until the page connects. */
  socket: TextSocket | undefined;
}

/**
 * Introduces the pages that watch the same stream, by the signaling protocol of PeerJS. Each stream is a room: a page gets a random id,
 * reads the ids of some others, and exchanges messages with pages of its room only.
 */
export class SwarmRooms {
  readonly #randomBytes: (length: number) => Uint8Array;
  readonly #clock: Pick<Clock, "now" | "at">;
  readonly #rooms = new Map<Infohash, Room>();
  readonly #requests = new HouseholdLimit(REQUESTS);

  constructor(randomBytes: (length: number) => Uint8Array, clock: Pick<Clock, "now" | "at">) {
    this.#randomBytes = randomBytes;
    this.#clock = clock;
  }

  /** Assigns an id of 16 hex digits to a page of the household of `host`; returns undefined if too many are in use. */
  assignId(infohash: Infohash, host: string): string | undefined {
    const now = this.#clock.now();
    if (!this.#requests.take(host, now)) return undefined;
    for (const [each, room] of this.#rooms) this.#dropExpired(each, room, now);
    const household = householdOf(host);
    const pages = [...this.#rooms.values()].flatMap((room) => [...room.values()]);
    const own = pages.filter((page) => page.household === household);
    if (pages.length >= MAX_PAGES || own.length >= MAX_HOUSEHOLD_PAGES) return undefined;
    const room: Room = this.#rooms.get(infohash) ?? new Map();
    this.#rooms.set(infohash, room);
    const id = toHex(this.#randomBytes(8));
    room.set(id, { household, expiresAt: after(now, CONNECT_MS), socket: undefined });
    return id;
  }

  /** Returns ids of connected pages of the room, in random order, without `own`; undefined if the household asks too often. */
  list(infohash: Infohash, own: string, host: string): readonly string[] | undefined {
    if (!this.#requests.take(host, this.#clock.now())) return undefined;
    const room = this.#rooms.get(infohash) ?? [];
    const ids = [...room].flatMap(([id, { socket }]) => (socket && id !== own ? [id] : []));
    return shuffle(ids, this.#random).slice(0, MAX_LISTED);
  }

  /** Connects a page of the device at `host` under its id. If that is not possible, sends the reason and closes the connection. */
  join(infohash: Infohash, id: string, host: string, socket: TextSocket): TextSocketHandlers {
    const room = this.#rooms.get(infohash);
    const page = room?.get(id);
    if (room === undefined || page?.household !== householdOf(host) || page.socket !== undefined) {
      socket.send(errorMessage("the id is invalid or has expired"));
      socket.close();
      return { received() {}, closed() {} };
    }
    page.socket = socket;
    const rate = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST);
    socket.send(JSON.stringify({ type: "OPEN" }));
    return {
      received: (text) => {
        const message = readPeerJsMessage(text);
        // Keeps the connection alive.
        if (message?.type === "HEARTBEAT") return;
        if (message === undefined || !rate.take(1, this.#clock.now())) {
          socket.close();
          return;
        }
        const { type, dst, payload } = message;
        if (!RELAYED_TYPES.has(type) || dst === undefined) return;
        const to = room.get(dst)?.socket;
        if (to) to.send(JSON.stringify({ type, src: id, dst, payload }));
        else if (type === "OFFER") socket.send(JSON.stringify({ type: "EXPIRE", src: dst, dst: id }));
      },
      closed: () => {
        if (room.get(id) === page) room.delete(id);
        if (room.size === 0 && this.#rooms.get(infohash) === room) this.#rooms.delete(infohash);
      },
    };
  }

  #dropExpired(infohash: Infohash, room: Room, now: Instant): void {
    for (const [id, { socket, expiresAt }] of room)
      if (socket === undefined && expiresAt <= now) room.delete(id);
    if (room.size === 0) this.#rooms.delete(infohash);
  }

  readonly #random = (): number => {
    const [a, b, c, d] = this.#randomBytes(4) as unknown as [number, number, number, number];
    return (((a << 24) | (b << 16) | (c << 8) | d) >>> 0) / 2 ** 32;
  };
}
