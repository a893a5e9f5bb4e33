import { latin1Bytes, toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { languageCode } from "../media/language.ts";
import type { Runtime } from "../runtime/contract.ts";
import { type Access, chooseFile } from "./access.ts";
import type { Transfers } from "./contract.ts";
import type { HoldUp } from "./diagnosis/contract.ts";
import type { PlaybackRequest, SegmentName } from "./engine.ts";
import { orLater } from "./guarded-stream.ts";
import type { Hold } from "./holds.ts";
import { type PausedPlayer, PausedPlayers } from "./paused-players.ts";
import { type SegmentBytes, SegmentCache } from "./segment-cache.ts";
import { PlayerSession, variantOf } from "./session.ts";
import { splitSegmentNumber } from "./session-segments.ts";

/** Far more than one machine can feed; a program that starts sessions in a loop shall not eat the memory. */
const SESSIONS_LIMIT = 256;

/**
 * Segments of live streams stand in their windows already, and come without end: they are shared by those who ask at the
 * same time, and never push out what was made of a film.
 */
const LIVE_SEGMENTS_BYTES = 8 * 1024 * 1024;

/** Longer than opening the cache of content takes; shorter than a start may. */
const FILES_WAIT_MS = 150;

interface Parts extends Access {
  readonly runtime: Pick<Runtime, "sha1" | "randomBytes">;
  readonly segments: SegmentCache;
  readonly transfers: Pick<Transfers, "cacheFigures">;
  readonly proxyProblem: () => string | undefined;
  readonly log: Log;
}

/** All sessions, by the parts of their URLs; who joins which, and who ends which. */
export class Sessions {
  readonly #parts: Parts;
  /** Makes keys that stay the same for the same player and content, and that nobody else can compute. */
  readonly #secret: string;
  readonly #byKey = new Map<string, PlayerSession>();
  readonly #byOrdinal = new Map<string, PlayerSession>();
  readonly #paused = new PausedPlayers();
  readonly #liveSegments = new SegmentCache(LIVE_SEGMENTS_BYTES);
  #starts = 0;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#secret = toHex(parts.runtime.randomBytes(32));
  }

  get count(): number {
    return this.#byKey.size;
  }

  get(infohash: Infohash, key: string): PlayerSession | undefined {
    return this.#byKey.get(`${infohash}/${key}`);
  }

  /** See `Engine.start`. */
  async start(asked: PlaybackRequest, signal?: AbortSignal): Promise<PlayerSession> {
    const order = ++this.#starts;
    const request = { ...asked, audioLanguage: knownLanguage(asked.audioLanguage) };
    const { content, selectedFiles } = await this.#parts.resolve(request.selector, {
      allowPrivateUrls: request.allowPrivateUrls,
      signal,
    });
    if (this.#isClosed) throw new SluiceError("session_stopped", "the engine is stopping");
    const hold = this.#parts.holds.open(content);
    try {
      // With a transport file in hand the files are known in a moment: then a wrong index is said at once.
      if (content.transportFile) await orLater(hold.transfer.ready(signal), this.#parts.clock, FILES_WAIT_MS);
      const session =
        this.#join(hold, request, selectedFiles, order) ?? this.#add(hold, request, selectedFiles);
      session.order = order;
      session.touch();
      return session;
    } catch (thrown) {
      hold.release();
      throw thrown;
    }
  }

  /** One segment by its URL parts. */
  async segment(infohash: Infohash, name: SegmentName, signal?: AbortSignal): Promise<SegmentBytes> {
    const { ordinal, index } = splitSegmentNumber(name.number);
    const place = `${infohash}/${ordinal}`;
    const session = this.#byOrdinal.get(place) ?? (await this.#resume(place, infohash, ordinal));
    if (!session) throw new SluiceError("unknown_session", "no session plays this segment");
    return session.namedSegment(name, index, signal);
  }

  /** Why those who play this content wait, each of them. */
  holdUps(infohash: Infohash): (HoldUp | undefined)[] {
    return [...this.#byKey.values()]
      .filter((session) => session.infohash === infohash)
      .map((session) => session.holdUp());
  }

  stopAll(): void {
    this.#isClosed = true;
    for (const session of this.#byKey.values())
      session.end(new SluiceError("session_stopped", "the engine is stopping"));
  }

  /**
   * The session this start joins, where its player plays the same already; ends what the player played before.
   * CHOICE(player-id): the newest start of a player wins, by the time it was asked. One that was asked earlier but
   * resolves later finds the newer one and gives way.
   */
  #join(
    hold: Hold,
    request: PlaybackRequest,
    selectedFiles: readonly number[] | undefined,
    order: number,
  ): PlayerSession | undefined {
    const { infohash } = hold.transfer;
    const fileIndex = wantedFile(hold, request, selectedFiles);
    // CHOICE(no-pid): a start without pid is a player of its own. Were the address the player, as in older engines,
    // two players behind one address would end each other's streams, which is what people complain of most.
    if (request.playerId === undefined) return undefined;
    let joined: PlayerSession | undefined;
    for (const session of this.#byKey.values()) {
      if (session.playerId !== request.playerId) continue;
      const isSameContent = session.infohash === infohash && session.fileIndex === fileIndex;
      if (isSameContent && session.variant !== variantOf(request)) continue;
      if (isSameContent && !session.isSpent(hold.transfer)) joined = session;
      else if (session.order > order) throw newerDownload();
      else session.end(newerDownload());
    }
    if (!joined) return undefined;
    hold.release();
    joined.clientSessionId = request.clientSessionId;
    joined.wantsEvents ||= request.wantsEvents;
    return joined;
  }

  #add(
    hold: Hold,
    request: PlaybackRequest,
    selectedFiles: readonly number[] | undefined,
    before?: PausedPlayer,
  ): PlayerSession {
    this.#makeRoom();
    const { infohash } = hold.transfer;
    const { runtime, transfers, proxyProblem, log } = this.#parts;
    const ordinal = before?.ordinal ?? this.#freeOrdinal(infohash, request);
    const session = new PlayerSession({
      access: this.#parts,
      segments: this.#parts.segments,
      liveSegments: this.#liveSegments,
      cacheFigures: () => transfers.cacheFigures(),
      proxyProblem,
      log,
      hold,
      request,
      selectedFiles,
      key: before?.key ?? this.#newKey(infohash, request),
      id: toHex(runtime.randomBytes(20)),
      ordinal,
      ended: (over, reason) => this.#remove(over, reason, selectedFiles),
    });
    this.#byKey.set(`${infohash}/${session.key}`, session);
    if (ordinal !== undefined) this.#byOrdinal.set(`${infohash}/${ordinal}`, session);
    log.info("session started", {
      infohash,
      output: request.output,
      name: hold.transfer.name,
      sessions: this.count,
    });
    return session;
  }

  #remove(over: PlayerSession, reason: SluiceError, selectedFiles: readonly number[] | undefined): void {
    const { infohash, key, ordinal, request } = over;
    this.#byKey.delete(`${infohash}/${key}`);
    this.#parts.log.info("session ended", { infohash, reason: reason.message, sessions: this.count });
    if (ordinal === undefined) return;
    this.#byOrdinal.delete(`${infohash}/${ordinal}`);
    if (reason.code === "unknown_session")
      this.#paused.add(`${infohash}/${ordinal}`, { request, selectedFiles, key, ordinal });
  }

  /** Goes on with the session of a player that was quiet for too long and asks for a segment again. */
  async #resume(place: string, infohash: Infohash, ordinal: number): Promise<PlayerSession | undefined> {
    const before = this.#paused.get(place);
    if (!before || this.#isClosed || this.#plays(before.request.playerId)) return undefined;
    // What the URL of a web server was found to be is remembered by the id that it was given.
    const { content } = await this.#parts.resolve(
      { kind: "infohash", infohash },
      { allowPrivateUrls: false, signal: undefined },
    );
    // Of several segments that are asked at once, the first brings the session back.
    const resumed = this.#byOrdinal.get(`${infohash}/${ordinal}`);
    if (resumed || this.#isClosed || !this.#paused.get(place)) return resumed;
    this.#paused.delete(place);
    const hold = this.#parts.holds.open(content);
    try {
      return this.#add(hold, before.request, before.selectedFiles, before);
    } catch (thrown) {
      hold.release();
      throw thrown;
    }
  }

  /**
   * CHOICE(session-key): 32 hex digits, as deployed engines have them, but made with a secret: whoever does not have
   * the URL cannot stop or watch the session. The same `pid` and content give the same URLs again.
   */
  #newKey(infohash: Infohash, request: PlaybackRequest): string {
    const { runtime } = this.#parts;
    if (request.playerId === undefined) return toHex(runtime.randomBytes(16));
    const name = JSON.stringify([request.playerId, infohash, request.fileIndex ?? -1, variantOf(request)]);
    const inner = toHex(runtime.sha1(latin1Bytes(this.#secret + encodeURIComponent(name))));
    const key = toHex(runtime.sha1(latin1Bytes(this.#secret + inner))).slice(0, 32);
    // Taken where the player's earlier session was asked with another index for the same file.
    return this.#byKey.has(`${infohash}/${key}`) ? toHex(runtime.randomBytes(16)) : key;
  }

  /** Whether the player of this `pid` has a session: one that has moved on does not come back. */
  #plays(playerId: string | undefined): boolean {
    return (
      playerId !== undefined && [...this.#byKey.values()].some((session) => session.playerId === playerId)
    );
  }

  /** Only segments need a number; a player that may come back keeps its own. */
  #freeOrdinal(infohash: Infohash, request: PlaybackRequest): number | undefined {
    if (request.output !== "hls") return undefined;
    let ordinal = 0;
    const isTaken = (place: string) => this.#byOrdinal.has(place) || this.#paused.get(place) !== undefined;
    while (isTaken(`${infohash}/${ordinal}`)) ordinal++;
    return ordinal;
  }

  /** Where there are too many, the one that nobody has used for longest gives way. */
  #makeRoom(): void {
    if (this.#byKey.size < SESSIONS_LIMIT) return;
    let oldest: PlayerSession | undefined;
    for (const session of this.#byKey.values()) {
      if (!session.isBusy && (!oldest || session.lastUse < oldest.lastUse)) oldest = session;
    }
    if (!oldest)
      throw new SluiceError("too_many", `${SESSIONS_LIMIT} sessions are being played; stop one first`);
    oldest.end(new SluiceError("session_stopped", "newer sessions took its place"));
  }
}

/** The file a start means: known at once where the files are; -1 (as {@link PlayerSession.fileIndex}) where not. */
function wantedFile(hold: Hold, request: PlaybackRequest, selected: readonly number[] | undefined): number {
  if (hold.transfer.files.length === 0) return request.fileIndex ?? -1;
  return chooseFile(hold.transfer, request.fileIndex, selected).index;
}

/** One code for one language: `ru` and `rus` shall share what is made for either. */
function knownLanguage(tag: string | undefined): string | undefined {
  const code = languageCode(tag);
  return code === "und" ? undefined : code;
}

function newerDownload(): SluiceError {
  return new SluiceError("session_stopped", "got newer download");
}
