import { type TsSegment, TsSegmenter, type TsSegmenterOptions } from "./ts-segmenter.ts";

/** MPEG-TS bytes in, in any chunks; segments out, as the reader pulls them. */
export class TsSegmentStream extends TransformStream<Uint8Array, TsSegment> {
  constructor(options: TsSegmenterOptions = {}) {
    const segmenter = new TsSegmenter(options);
    super({
      transform(chunk, controller) {
        for (const segment of segmenter.push(chunk)) controller.enqueue(segment);
      },
      flush(controller) {
        for (const segment of segmenter.flush()) controller.enqueue(segment);
      },
    });
  }
}
