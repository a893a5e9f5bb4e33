import { SluiceError } from "../base/errors.ts";
import type { Media, OpenMedia } from "../remux/contract.ts";
import type { ByteSource } from "./contract.ts";

/** One opening that several may wait for. */
interface Opening {
  readonly media: Promise<Media>;
  readonly abort: AbortController;
  waiters: number;
  isOpen: boolean;
}

/**
 * The media of one file and language, opened once for all who ask. It is given up when all who wait for it have gone;
 * an opening that failed is forgotten, so that the next asker tries again.
 */
export class SharedMedia {
  readonly #open: (signal: AbortSignal) => Promise<Media>;
  #opening: Opening | undefined;

  constructor(openMedia: OpenMedia, source: ByteSource, language: string | undefined, targetSeconds: number) {
    this.#open = (signal) =>
      openMedia(source, {
        signal,
        targetSeconds,
        ...(language !== undefined && { preferredAudioLanguage: language }),
      });
  }

  /** The media; rejects with the signal's reason when this asker gives up. */
  async get(signal: AbortSignal | undefined): Promise<Media> {
    signal?.throwIfAborted();
    const opening = this.#opening ?? this.#begin();
    opening.waiters++;
    try {
      return await withSignal(opening.media, signal);
    } finally {
      opening.waiters--;
      if (opening.waiters === 0 && !opening.isOpen)
        opening.abort.abort(new SluiceError("cancelled", "nobody waits any more"));
    }
  }

  /** Closes the media, or ends its opening with `reason`. */
  close(reason: SluiceError): void {
    const opening = this.#opening;
    this.#opening = undefined;
    if (opening === undefined) return;
    opening.abort.abort(reason);
    // An opening that failed has told its askers already.
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
    abort.signal.addEventListener("abort", forget, { once: true });
    opening.media.then(() => {
      opening.isOpen = true;
      if (abort.signal.aborted) closeLate(opening.media);
    }, forget);
    return opening;
  }
}

/** The opening succeeded after everyone had gone: nobody would close it. */
function closeLate(media: Promise<Media>): void {
  void media.then((opened) => opened.close());
}

async function withSignal<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
