import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import { writeMediaManifest } from "../media/manifest.ts";
import type { Media, OpenMedia } from "../remux/contract.ts";
import { pieceStream } from "../remux/piece-stream.ts";
import type { RecordedFile, RecordedMedia, Recording } from "./recording-contract.ts";

/** An opened recording is a head, a tail and the boundaries that were found: some kilobytes. A growing one is opened for each size. */
const MAX_OPEN = 16;
/** Browsers play AAC and MP3; segments are MPEG-TS, which carries neither Opus nor FLAC for them. */
const CONVERSION = { all: true, mp3: false, ac3: false, isHls: false, channels: 2 } as const;

/** The recordings that browsers play, with the positions of their segments. */
export class OpenedRecordings {
  readonly #openMedia: OpenMedia;
  readonly #media = new Map<string, Promise<Media>>();

  constructor(openMedia: OpenMedia) {
    this.#openMedia = openMedia;
  }

  /**
   * Returns the first `bytes` bytes of a recording; undefined if it has fewer. `open` opens its file; every read opens it again, so that
   * nothing has to be closed. Rejects with `SluiceError`, for example if the file is not playable.
   */
  async media(
    recording: Recording,
    bytes: number | undefined,
    open: () => Promise<RecordedFile | undefined>,
  ): Promise<RecordedMedia | undefined> {
    const size = bytes ?? recording.bytes;
    if (size === 0 || size > recording.bytes) return undefined;
    const media = await this.#open(recording, size, open);
    if (media.tsProblem) throw media.tsProblem;
    return {
      manifest: (uriOf) =>
        writeMediaManifest({
          kind: "vod",
          segments: media.segments.map(({ durationSeconds }, index) => ({
            durationSeconds,
            uri: uriOf(index, size),
          })),
        }),
      async segment(index, signal) {
        const remux = await media.remux("ts", index, index + 1, signal);
        return pieceStream(remux).pipeThrough(remux.remuxer);
      },
    };
  }

  async #open(
    { id, start }: Recording,
    bytes: number,
    open: () => Promise<RecordedFile | undefined>,
  ): Promise<Media> {
    // The id of a deleted recording can be used again.
    const key = `${id} ${start} ${bytes}`;
    const media =
      this.#media.get(key) ?? this.#openMedia(fileAccess(bytes, open), { audio: { conversion: CONVERSION } });
    this.#media.delete(key);
    this.#media.set(key, media);
    trimOldest(this.#media, MAX_OPEN);
    try {
      return await media;
    } catch (error) {
      this.#media.delete(key);
      throw error;
    }
  }
}

function fileAccess(size: number, open: () => Promise<RecordedFile | undefined>): RandomAccess {
  return {
    size,
    async read({ start, end }) {
      const into = new Uint8Array(end - start);
      const file = await open();
      if (file === undefined) throw new SluiceError("no_such_file", "the recording has no file");
      await file.read(start, into).finally(() => file.close());
      return into;
    },
  };
}
