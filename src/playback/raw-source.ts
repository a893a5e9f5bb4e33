import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { ByteSource, ContentFile } from "../transfer/contract.ts";
import type { SegmentBytes, SegmentSource, SourceBody } from "../transfer/segment-source.ts";

/** How much of the file must have arrived before playback counts as started. */
const HEAD_BYTES = 16 * 1024;

/** Bytes per second of a file; undefined if its duration is not known. */
export function averageRate(bytes: number, durationSeconds: number): number | undefined {
  return durationSeconds > 0 ? bytes / durationSeconds : undefined;
}

/** A file that players get as it is: music, transport streams, and containers that are not remuxed. It has no segments. */
export class RawSource implements SegmentSource {
  readonly container = "ts";
  readonly isLive = false;
  readonly name: string;
  readonly bytesPerSecond: number | undefined;
  readonly body: SourceBody;

  /** `durationSeconds` is 0 if unknown. */
  constructor(
    infohash: Infohash,
    { index, size }: ContentFile,
    file: ByteSource,
    mime: string,
    durationSeconds: number,
  ) {
    this.name = `${infohash}/${index}/raw`;
    this.bytesPerSecond = averageRate(size, durationSeconds);
    this.body = {
      mime,
      size,
      async ready(signal) {
        await file.read({ start: 0, end: Math.min(HEAD_BYTES, size) }, { signal });
      },
      reader: (range) => file.reader(range),
    };
  }

  manifest(): Promise<string> {
    return Promise.reject(noSegments());
  }

  first(): Promise<number> {
    return Promise.reject(noSegments());
  }

  async reach(): Promise<undefined> {}

  find(): Promise<number> {
    return Promise.reject(noSegments());
  }

  make(): Promise<SegmentBytes> {
    return Promise.reject(noSegments());
  }
}

function noSegments(): SluiceError {
  return new SluiceError("no_such_segment", "this file is played as it is, without segments");
}
