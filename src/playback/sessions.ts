import { resolvesWithin } from "../async/sleep.ts";
import { latin1Bytes, toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { AudioTranscoder } from "../remux/audio/transcoder.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Hold, Transfers } from "../transfer/contract.ts";
import type { SegmentBytes, SegmentName } from "../transfer/segment-source.ts";
import { splitSegmentNumber } from "../transfer/segment-source.ts";
import { type Access, chooseFile } from "./access.ts";
import type { PlaybackRequest, SessionActivity } from "./contract.ts";
import { ConvertedSources } from "./converted-source.ts";
import type { Buffering } from "./diagnosis/contract.ts";
import type { EngineFigures, HeldTransfer } from "./holds.ts";
import { type SegmentBody, segmentBody } from "./segment-body.ts";
import { SegmentCache } from "./segment-cache.ts";
import { PlayerSession } from "./session.ts";
import type { SessionEvents } from "./session-events.ts";
import { knownLanguage, outputOf, variantOf } from "./session-request.ts";

/** CHOICE(foreign-share): limit of the sessions that pages of other sites start. */
const FOREIGN_SESSIONS_LIMIT = 16;

/**
 * Segments of live streams are in their windows already, and a stream may last for days: a small cache of their own shares them
 * between concurrent requests and keeps the segments of films.
 */
const LIVE_SEGMENTS_BYTES = 8 * 1024 * 1024;

/** Longer than the cache takes to open content; shorter than a start may take. */
const FILES_WAIT_MS = 150;

/** Small records; players of older ones have most likely gone. */
const PAUSED_PLAYERS_LIMIT = 64;

/** What an expired session needs to continue. */
interface PausedPlayer {
  readonly request: PlaybackRequest;
  readonly selectedFiles: readonly number[] | undefined;
  readonly key: string;
  /** HLS only. */
  readonly ordinal: number | undefined;
}

/** Dependencies of {@link Sessions}. */
interface SessionsDependencies extends Access {
  readonly runtime: Pick<Runtime, "sha1" | "randomBytes">;
  readonly segments: SegmentCache;
  readonly transfers: Pick<Transfers, "cacheFigures">;
  readonly proxyProblem: () => string | undefined;
  /** Converts audio; absent: audio is never converted. */
  readonly transcoder?: AudioTranscoder | undefined;
  /** Called when a start begins, before its content is known, and again before its session exists. */
  readonly sessionStarts?: (request: PlaybackRequest) => void;
  readonly log: Log;
}

/** All sessions by the parts of their URLs. Decides which session a start joins and which it ends. */
export class Sessions {
  readonly #dependencies: SessionsDependencies;
  /** Makes keys that are the same for the same player and content, and that clients cannot compute. */
  readonly #secret: string;
  readonly #byKey = new Map<string, PlayerSession>();
  readonly #byOrdinal = new Map<string, PlayerSession>();
  /**
   * By `<infohash>/<key>`. CHOICE(paused-player): a paused HLS player reads nothing, so its session expires. When it
   * continues, it requests the next segment of its manifest; that brings the session back under the same URLs. So does an
   * MPEG-TS player that connects again. Requests for `stat`, manifests and commands do not, and a stopped session does not
   * come back.
   */
  readonly #paused = new Map<string, PausedPlayer>();
  /** Events of ended sessions that have not been fetched, by `<infohash>/<key>`. */
  readonly #leftEvents = new Map<string, SessionEvents>();
  readonly #liveSegments = new SegmentCache(LIVE_SEGMENTS_BYTES);
  readonly #converted: ConvertedSources;
  #startCount = 0;
  #isClosed = false;

  constructor(dependencies: SessionsDependencies) {
    this.#dependencies = dependencies;
    this.#converted = new ConvertedSources(dependencies.transcoder);
    this.#secret = toHex(dependencies.runtime.randomBytes(32));
  }

  figures(): Pick<EngineFigures, "sessions" | "players"> {
    const all = [...this.#byKey.values()];
    const players = all.filter(({ request }) => !request.isVisit && !request.isBackground);
    return { sessions: all.length, players: players.length };
  }

  get(infohash: Infohash, key: string): PlayerSession | undefined {
    return this.#byKey.get(`${infohash}/${key}`);
  }

  /** See `Engine.start`. */
  async start(options: PlaybackRequest, signal?: AbortSignal): Promise<PlayerSession> {
    const order = ++this.#startCount;
    this.#dependencies.sessionStarts?.(options);
    if (options.audioConversion) this.#dependencies.transcoder?.prepare();
    const { content: found, selectedFiles: linked } = await this.#dependencies.resolve(options.selector, {
      allowPrivateUrls: options.allowPrivateUrls,
      signal,
    });
    const content = options.isShared ? { ...found, wantsHistory: true } : found;
    if (options.withoutPeers && !content.web)
      throw new SluiceError("unsupported_content", "disable_p2p: this content comes from peers only");
    const selectedFiles = options.selectedFiles ?? linked;
    if (this.#isClosed) throw new SluiceError("session_stopped", "the engine is stopping");
    const { holds } = this.#dependencies;
    const hold = options.isVisit ? holds.openForVisit(content) : holds.open(content, options.isForeign);
    try {
      // With a transport file the files are known in a moment, so a wrong index is reported at once.
      if (content.transportFile)
        await resolvesWithin(hold.transfer.ready(signal), this.#dependencies.clock, FILES_WAIT_MS);
      const request = {
        ...options,
        audioLanguage: knownLanguage(options.audioLanguage),
        output: outputOf(options, hold, content.web?.kind),
      };
      const isDirect = content.web !== undefined;
      const session =
        this.#join(hold, request, selectedFiles, order) ??
        this.#add(hold, request, { selectedFiles, isDirect });
      session.order = order;
      session.touch();
      return session;
    } catch (thrown) {
      hold.release();
      throw thrown;
    }
  }

  /** Returns one segment by its URL parts. Rejects with `SluiceError`. */
  async segment(infohash: Infohash, name: SegmentName, signal?: AbortSignal): Promise<SegmentBytes> {
    return (await this.#ofSegment(infohash, name)).namedSegment(
      name,
      splitSegmentNumber(name.number).index,
      signal,
    );
  }

  /** Returns one segment for a response. Live segments stay in memory until they are sent, because they cannot be made again. */
  async segmentBody(infohash: Infohash, name: SegmentName, signal?: AbortSignal): Promise<SegmentBody> {
    const session = await this.#ofSegment(infohash, name);
    const bytes = await session.namedSegment(name, splitSegmentNumber(name.number).index, signal);
    const again = session.isLive ? undefined : (stop: AbortSignal) => this.segment(infohash, name, stop);
    return segmentBody(this.#dependencies.clock, bytes, again);
  }

  async #ofSegment(infohash: Infohash, name: SegmentName): Promise<PlayerSession> {
    const { ordinal } = splitSegmentNumber(name.number);
    const session =
      this.#byOrdinal.get(`${infohash}/${ordinal}`) ??
      (await this.#resume(infohash, (paused) => paused.ordinal === ordinal));
    if (!session) throw new SluiceError("unknown_session", "no session plays this segment");
    return session;
  }

  /** Returns the session of an MPEG-TS player that connects; brings it back if it has expired. */
  async reconnect(infohash: Infohash, key: string): Promise<PlayerSession | undefined> {
    const isOfPlayer = (paused: PausedPlayer) => paused.key === key && paused.request.output === "ts";
    return this.get(infohash, key) ?? (await this.#resume(infohash, isOfPlayer));
  }

  /** Why each player of this content waits; undefined for a player that does not. */
  playersBuffering(infohash: Infohash): (Buffering | undefined)[] {
    return [...this.#byKey.values()]
      .filter((session) => session.infohash === infohash)
      .map((session) => session.buffering());
  }

  /** What each session does. */
  activity(): SessionActivity[] {
    return [...this.#byKey.values()].map((session) => {
      const { infohash, key, output, isLive, lease, request } = session;
      const { figures, variants, variantIndex, ...state } = session.state();
      const isConverted = request.audioConversion !== undefined;
      const { isPlayed, startedAt } = lease;
      const { client } = request;
      return { ...state, infohash, key, client, output, isLive, isPlayed, isConverted, startedAt };
    });
  }

  /** Ends all sessions of this content, because its transfer is stopped. */
  endOf(infohash: Infohash): void {
    for (const session of this.#byKey.values())
      if (session.infohash === infohash)
        session.end(new SluiceError("session_stopped", "the transfer was stopped"));
  }

  /** Ends all sessions; later starts are refused. */
  stopAll(): void {
    this.#isClosed = true;
    for (const session of this.#byKey.values())
      session.end(new SluiceError("session_stopped", "the engine is stopping"));
  }

  /**
   * Returns the session of the same player and content, if there is one; ends what the player played before.
   * CHOICE(player-id): the newest start of a player wins, in the order of requests. An older start that resolves later fails.
   */
  #join(
    hold: Hold,
    request: PlaybackRequest,
    selectedFiles: readonly number[] | undefined,
    order: number,
  ): PlayerSession | undefined {
    const { infohash } = hold.transfer;
    const fileIndex = wantedFile(hold, request, selectedFiles);
    // CHOICE(no-pid): a start without pid counts as a separate player. Older engines used the client address instead, so two
    // players behind one address stopped each other, which is the most frequent complaint.
    if (request.playerId === undefined) return undefined;
    let joined: PlayerSession | undefined;
    for (const session of this.#byKey.values()) {
      if (session.playerId !== request.playerId) continue;
      const isSameContent = session.infohash === infohash && session.fileIndex === fileIndex;
      if (isSameContent && variantOf(session.request) !== variantOf(request)) continue;
      if (isSameContent && !request.isRestart && session.isUsable(hold.transfer)) joined = session;
      else if (session.order > order) throw newerDownload();
      else session.end(newerDownload());
    }
    if (!joined) return undefined;
    hold.release();
    joined.clientSessionId = request.clientSessionId;
    joined.events.want(request);
    return joined;
  }

  #add(
    hold: Hold,
    request: PlaybackRequest,
    { selectedFiles, isDirect }: { selectedFiles: readonly number[] | undefined; isDirect: boolean },
    paused?: PausedPlayer,
  ): PlayerSession {
    this.#dependencies.sessionStarts?.(request);
    this.#makeRoom(request.isForeign === true);
    const { infohash, name } = hold.transfer;
    const { runtime, transfers, proxyProblem, log } = this.#dependencies;
    const ordinal = paused?.ordinal ?? this.#freeOrdinal(infohash, request);
    const session = new PlayerSession({
      access: this.#dependencies,
      segments: this.#dependencies.segments,
      liveSegments: this.#liveSegments,
      converted: this.#converted,
      cacheFigures: () => transfers.cacheFigures(),
      proxyProblem,
      log,
      hold,
      request,
      isDirect,
      selectedFiles,
      key: paused?.key ?? this.#newKey(infohash, request),
      id: toHex(runtime.randomBytes(20)),
      ordinal,
      ended: (over, reason) => this.#remove(over, reason, selectedFiles),
    });
    this.#byKey.set(`${infohash}/${session.key}`, session);
    this.#paused.delete(`${infohash}/${session.key}`);
    this.#leftEvents.delete(`${infohash}/${session.key}`);
    if (ordinal !== undefined) this.#byOrdinal.set(`${infohash}/${ordinal}`, session);
    log.info("session started", { infohash, output: request.output, name, sessions: this.#byKey.size });
    return session;
  }

  /** See `Engine.events`. */
  events(infohash: Infohash, key: string): Pick<SessionEvents, "nextEvent"> | undefined {
    const place = `${infohash}/${key}`;
    const left = this.#leftEvents.get(place);
    if (left?.hasEvent === false) this.#leftEvents.delete(place);
    return this.#byKey.get(place) ?? this.#leftEvents.get(place);
  }

  #remove(over: PlayerSession, reason: SluiceError, selectedFiles: readonly number[] | undefined): void {
    const { infohash, key, ordinal, request } = over;
    this.#byKey.delete(`${infohash}/${key}`);
    const sessions = this.#byKey.size;
    this.#dependencies.log.info("session ended", { infohash, reason: reason.message, sessions });
    if (ordinal !== undefined) this.#byOrdinal.delete(`${infohash}/${ordinal}`);
    if (over.events.hasEvent) this.#leftEvents.set(`${infohash}/${key}`, over.events);
    trimOldest(this.#leftEvents, PAUSED_PLAYERS_LIMIT);
    if (reason.code !== "unknown_session" || request.isShared) return;
    this.#paused.set(`${infohash}/${key}`, { request, selectedFiles, key, ordinal });
    trimOldest(this.#paused, PAUSED_PLAYERS_LIMIT);
  }

  /** Continues an expired session whose player requests media again. */
  async #resume(
    infohash: Infohash,
    isWanted: (paused: PausedPlayer) => boolean,
  ): Promise<PlayerSession | undefined> {
    const [place, paused] = this.#pausedOf(infohash).find(([, each]) => isWanted(each)) ?? [];
    if (!place || !paused || this.#isClosed || this.#plays(paused.request.playerId)) return undefined;
    // Content of a web server is remembered by its id, so the infohash is enough.
    const { content } = await this.#dependencies.resolve(
      { kind: "infohash", infohash },
      { allowPrivateUrls: false, signal: undefined },
    );
    // Of several concurrent requests, the first brings the session back.
    const resumed = this.#byKey.get(place);
    if (resumed || this.#isClosed || !this.#paused.get(place)) return resumed;
    this.#paused.delete(place);
    const hold = this.#dependencies.holds.open(content, paused.request.isForeign);
    try {
      const { request, selectedFiles } = paused;
      return this.#add(hold, request, { selectedFiles, isDirect: content.web !== undefined }, paused);
    } catch (thrown) {
      hold.release();
      throw thrown;
    }
  }

  /**
   * CHOICE(session-key): 32 hex digits, as in deployed engines, but made with a secret: without the URL a client can neither
   * stop nor watch the session. The same `pid` and content give the same URLs again.
   */
  #newKey(infohash: Infohash, request: PlaybackRequest): string {
    const { runtime } = this.#dependencies;
    if (request.playerId === undefined) return toHex(runtime.randomBytes(16));
    const name = JSON.stringify([request.playerId, infohash, request.fileIndex ?? -1, variantOf(request)]);
    const inner = toHex(runtime.sha1(latin1Bytes(this.#secret + encodeURIComponent(name))));
    const key = toHex(runtime.sha1(latin1Bytes(this.#secret + inner))).slice(0, 32);
    // Another session of this player may have the key.
    return this.#byKey.has(`${infohash}/${key}`) ? toHex(runtime.randomBytes(16)) : key;
  }

  /** Returns true if the player with this `pid` has a session: then its paused session does not come back. */
  #plays(playerId: string | undefined): boolean {
    return (
      playerId !== undefined && [...this.#byKey.values()].some((session) => session.playerId === playerId)
    );
  }

  /** Returns a free ordinal for HLS, undefined otherwise. Ordinals of paused players are not free. */
  #freeOrdinal(infohash: Infohash, request: PlaybackRequest): number | undefined {
    if (request.output !== "hls" || request.isShared) return undefined;
    const paused = new Set(this.#pausedOf(infohash).map(([, player]) => player.ordinal));
    let ordinal = 0;
    while (this.#byOrdinal.has(`${infohash}/${ordinal}`) || paused.has(ordinal)) ordinal++;
    return ordinal;
  }

  #pausedOf(infohash: Infohash): [string, PausedPlayer][] {
    return [...this.#paused].filter(([place]) => place.startsWith(`${infohash}/`));
  }

  /** Ends all sessions of the transfer that is used least; does nothing if every transfer has a player or another holder. */
  endUnused(transfers: readonly HeldTransfer[]): void {
    const unused = transfers
      .map(({ transfer, holders }) => {
        const sessions = [...this.#byKey.values()].filter((session) => session.transfer === transfer);
        return sessions.length === holders && !sessions.some(({ lease }) => lease.isPlayed) ? sessions : [];
      })
      .filter((sessions) => sessions.length > 0)
      .map((sessions) => ({ sessions, mostUseful: sessions.sort(byUsefulness).at(-1)! }))
      .sort((a, b) => byUsefulness(a.mostUseful, b.mostUseful));
    for (const session of unused[0]?.sessions ?? []) session.end(replaced());
  }

  /** At the limit, ends the least useful session. Throws `too_many` if all have players. */
  #makeRoom(isForeign: boolean): void {
    const all = [...this.#byKey.values()];
    const { maxSessions } = this.#dependencies.settings;
    const maxForeign = Math.min(FOREIGN_SESSIONS_LIMIT, Math.ceil(maxSessions / 2));
    const foreign = all.filter(({ request }) => request.isForeign === true);
    if (isForeign && foreign.length >= maxForeign)
      endLeastUseful(foreign, `session limit for pages of other sites (${maxForeign})`);
    else if (all.length >= maxSessions)
      endLeastUseful(all, `session limit (${maxSessions}; see --max-sessions)`);
  }
}

function endLeastUseful(sessions: readonly PlayerSession[], limit: string): void {
  const [least] = sessions.filter(({ lease }) => !lease.isPlayed).sort(byUsefulness);
  if (!least) throw new SluiceError("too_many", `${limit} reached; stop a session first`);
  least.end(replaced());
}

/** Sorts sessions without a connected player first, then by their last use. */
function byUsefulness({ lease: a }: PlayerSession, { lease: b }: PlayerSession): number {
  return Number(a.isConnected) - Number(b.isConnected) || a.lastUse - b.lastUse;
}

/** Has the code of an expired session, so that a paused HLS player can continue. */
function replaced(): SluiceError {
  return new SluiceError("unknown_session", "the session had no player and was replaced by a newer one");
}

/** Returns the file index that a start means; -1, as {@link PlayerSession.fileIndex}, if the files are not known yet. */
function wantedFile(hold: Hold, request: PlaybackRequest, selected: readonly number[] | undefined): number {
  if (hold.transfer.files.length === 0) return request.fileIndex ?? -1;
  return chooseFile(hold.transfer, request.fileIndex, selected).index;
}

function newerDownload(): SluiceError {
  return new SluiceError("session_stopped", "got newer download");
}
