import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { ByteSource, ContentFile } from "../transfer/contract.ts";
import type { SegmentBytes, SegmentSource, SourceBody } from "../transfer/segment-source.ts";

/** How much of the file must have arrived before playback counts as started. */
const HEAD_BYTES = 16 * 1024;

/** A file that players get as it is: music, and containers that are not remuxed. It has no segments. */
export class RawSource implements SegmentSource {
  readonly container = "ts";
  readonly isLive = false;
  readonly name: string;
  readonly body: SourceBody;

  constructor(infohash: Infohash, { index, size }: ContentFile, file: ByteSource, mime: string) {
    this.name = `${infohash}/${index}/raw`;
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
