import { orAborted } from "../async/abort.ts";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { ManifestRendition, SegmentBytes, SegmentName } from "../transfer/segment-source.ts";
import { TO_AAC } from "./channel-stream.ts";
import type { PlaybackRequest, SharedContent, SharedPlayback } from "./contract.ts";
import { withoutParts } from "./manifest-parts.ts";
import { segmentBody } from "./segment-body.ts";
import type { PlayerSession } from "./session.ts";
import type { Sessions } from "./sessions.ts";

/** A live manifest changes with each segment. Caches that ask once a second for all their players find it soon enough. */
const LIVE_MANIFEST_SECONDS = 1;
/** The manifest of a file changes only with the version of the engine. */
const FILM_MANIFEST_SECONDS = 3600;
/** A year: for bytes that never change (RFC 8246). */
const FILM_SEGMENT_SECONDS = 31_536_000;
/** As long as manifests list a live segment. The source may use its number again after a million segments, or after it lost its state. */
const LIVE_SEGMENT_SECONDS = 60;
/** For a live segment with a gap, which other engines may have whole: only concurrent requests share it. */
const BROKEN_SEGMENT_SECONDS = 1;

/** Dependencies of {@link SharedSessions}. */
interface SharedSessionsDependencies {
  readonly runtime: Pick<Runtime, "clock" | "sha1">;
  readonly sessions: Pick<Sessions, "start" | "get">;
}

/** A session that was started; `session` is set when it exists. */
interface Started {
  readonly starting: Promise<PlayerSession>;
  session: PlayerSession | undefined;
}

/** The sessions behind the URLs that all players share: one for each file, and one for its converted audio, started by the first request and ended by the idle timeout. */
export class SharedSessions implements SharedPlayback {
  readonly #dependencies: SharedSessionsDependencies;
  /** By infohash, file index and conversion. Bounded by the limit of sessions: a session that has ended is replaced or removed at the next start. */
  readonly #started = new Map<string, Started>();
  readonly #tags = new WeakMap<SegmentBytes, string>();

  constructor(dependencies: SharedSessionsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * CHOICE(shared-manifest): a live manifest lists whole segments only. With parts, each player would ask four times a second, and a cache
   * would need a connection for each part of each rendition.
   */
  async manifest(content: SharedContent, rendition: ManifestRendition, signal?: AbortSignal) {
    const session = await this.#session(content, signal);
    const whole = withoutParts(await session.manifest("", rendition, signal));
    checkKind(session, content);
    return {
      text: whole,
      tag: this.#tagOf(encodeUtf8(whole)),
      freshSeconds: session.isLive ? LIVE_MANIFEST_SECONDS : FILM_MANIFEST_SECONDS,
      isImmutable: false,
    };
  }

  async segment(content: SharedContent, name: SegmentName, signal?: AbortSignal) {
    const session = await this.#session(content, signal);
    const make = (stop?: AbortSignal) => session.namedSegment(name, name.number, stop);
    const bytes = await make(signal);
    checkKind(session, content);
    const freshSeconds = freshSecondsOf(session, name);
    return {
      body: segmentBody(this.#dependencies.runtime.clock, bytes, session.isLive ? undefined : make),
      tag: this.#tagOf(bytes),
      freshSeconds,
      isImmutable: freshSeconds === FILM_SEGMENT_SECONDS,
    };
  }

  /** Returns the session of this content; starts it if there is none. */
  async #session(content: SharedContent, signal: AbortSignal | undefined): Promise<PlayerSession> {
    const key = `${content.infohash}/${content.fileIndex ?? "live"}/${content.convertsAudio}`;
    const started = this.#started.get(key);
    if (started && !this.#hasEnded(started)) return orAborted(started.starting, signal);
    for (const [other, each] of this.#started) if (this.#hasEnded(each)) this.#started.delete(other);
    const own: Started = { starting: this.#start(content), session: undefined };
    this.#started.set(key, own);
    own.starting.then(
      (session) => {
        own.session = session;
      },
      () => {
        if (this.#started.get(key) === own) this.#started.delete(key);
      },
    );
    return orAborted(own.starting, signal);
  }

  #start({ infohash, fileIndex, convertsAudio, isForeign }: SharedContent): Promise<PlayerSession> {
    const request: PlaybackRequest = {
      selector: { kind: "infohash", infohash },
      playerId: undefined,
      output: "hls",
      container: "auto",
      fileIndex,
      audioLanguage: undefined,
      // Browsers play Opus and FLAC.
      ...(convertsAudio && { audioConversion: { ...TO_AAC, isHls: true } }),
      clientSessionId: -1,
      wantsEvents: false,
      allowPrivateUrls: false,
      isForeign,
      isShared: true,
    };
    return this.#dependencies.sessions.start(request);
  }

  #hasEnded({ session }: Started): boolean {
    return (
      session !== undefined && this.#dependencies.sessions.get(session.infohash, session.key) !== session
    );
  }

  #tagOf(bytes: SegmentBytes): string {
    const known = this.#tags.get(bytes);
    if (known !== undefined) return known;
    const tag = toHex(this.#dependencies.runtime.sha1(bytes));
    this.#tags.set(bytes, tag);
    return tag;
  }
}

function freshSecondsOf({ isLive, isDirect, source }: PlayerSession, { kind, number }: SegmentName): number {
  if (!isLive) return isDirect ? LIVE_SEGMENT_SECONDS : FILM_SEGMENT_SECONDS;
  return kind === "ts" && source?.isWhole?.(number) ? LIVE_SEGMENT_SECONDS : BROKEN_SEGMENT_SECONDS;
}

/** Throws `bad_selector` if the path is that of the other kind of content. */
function checkKind({ isLive, infohash }: PlayerSession, { fileIndex }: SharedContent): void {
  if (isLive === (fileIndex === undefined)) return;
  const path = isLive ? `/live/${infohash}/index.m3u8` : `/vod/${infohash}/<file index>/index.m3u8`;
  throw new SluiceError("bad_selector", `this content is at ${path}`);
}
