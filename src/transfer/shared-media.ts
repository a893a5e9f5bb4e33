import { onAbort, orAborted } from "../async/abort.ts";
import { SluiceError } from "../base/errors.ts";
import type { AudioRequest, Media, OpenMedia } from "../remux/contract.ts";
import type { ByteSource } from "./contract.ts";

/** An opening in progress or complete, shared by several callers. */
interface Opening {
  readonly media: Promise<Media>;
  readonly abort: AbortController;
  waiters: number;
  isOpen: boolean;
}

/**
 * The media of one file and audio request, opened once for all callers. The opening is aborted when all callers have left. After a
 * failure the next caller tries again.
 */
export class SharedMedia {
  readonly #open: (signal: AbortSignal) => Promise<Media>;
  #opening: Opening | undefined;

  constructor(openMedia: OpenMedia, source: ByteSource, audio: AudioRequest, targetSeconds: number) {
    this.#open = (signal) =>
      openMedia(source, {
        signal,
        targetSeconds,
        audio,
      });
  }

  /** Returns the media. Rejects with the reason of `signal` if that fires first. */
  async get(signal: AbortSignal | undefined): Promise<Media> {
    signal?.throwIfAborted();
    const opening = this.#opening ?? this.#begin();
    opening.waiters++;
    try {
      return await orAborted(opening.media, signal);
    } finally {
      opening.waiters--;
      if (opening.waiters === 0 && !opening.isOpen)
        opening.abort.abort(new SluiceError("cancelled", "no caller waits for the media any more"));
    }
  }

  /** Closes the media, or ends its opening with `reason`. */
  close(reason: SluiceError): void {
    const opening = this.#opening;
    this.#opening = undefined;
    if (opening === undefined) return;
    opening.abort.abort(reason);
    // The callers have received the error of a failed opening already.
    opening.media.then(
      (media) => media.close(),
      () => {},
    );
  }

  #begin(): Opening {
    const abort = new AbortController();
    const opening: Opening = { media: this.#open(abort.signal), abort, waiters: 0, isOpen: false };
    this.#opening = opening;
    const forget = () => {
      if (this.#opening === opening) this.#opening = undefined;
    };
    onAbort(abort.signal, forget);
    opening.media.then(() => {
      opening.isOpen = true;
      if (abort.signal.aborted) closeLate(opening.media);
    }, forget);
    return opening;
  }
}

/** Closes media that was opened after all callers had left. */
function closeLate(media: Promise<Media>): void {
  void media.then((opened) => opened.close());
}
