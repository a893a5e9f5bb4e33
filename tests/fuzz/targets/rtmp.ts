import { concatBytes } from "../../../src/base/bytes.ts";
import { parseFlvAudio, parseFlvVideo } from "../../../src/media/flv.ts";
import { Publication } from "../../../src/protocol/rtmp/publication.ts";
import { encodeRtmpMessage } from "../../../src/wire/rtmp/chunks.ts";
import { message, patternMessages, publishRequest } from "../../live/rtmp-publisher.ts";
import type { FuzzTarget } from "../contract.ts";

const HANDSHAKE = new Uint8Array(1 + 2 * 1536).fill(3, 0, 1);

export const target: FuzzTarget = {
  name: "rtmp",
  corpus() {
    const request = publishRequest("live", "key").subarray(HANDSHAKE.length);
    const media = patternMessages(1, 0)
      .slice(0, 12)
      .map(({ type, timestamp, payload }) => message(type, timestamp, payload.subarray(0, 300)));
    const chunkSize = encodeRtmpMessage(
      { type: 1, streamId: 0, timestamp: 0, payload: Uint8Array.of(0, 0, 1, 0) },
      2,
      128,
    );
    const aggregate = message(
      22,
      5,
      Uint8Array.of(9, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0x17, 1, 0, 0, 0, 0, 0, 0, 16),
    );
    return [
      request,
      concatBytes([request, ...media]),
      concatBytes([request, chunkSize, ...media, aggregate]),
    ];
  },
  extremes: () => [
    concatBytes(Array.from({ length: 5000 }, () => Uint8Array.of(0x04, 0, 0, 0, 0, 0, 1, 18, 0, 0, 0, 0, 5))),
    message(20, 0, new Uint8Array(60_000).fill(5)),
  ],
  words: [
    Uint8Array.of(0xc4),
    Uint8Array.of(0xff, 0xff, 0xff),
    Uint8Array.of(0x17, 1),
    Uint8Array.of(0xaf, 1),
  ],
  run(bytes) {
    let tags = 0;
    let sent = 0;
    const publication = new Publication(
      {
        send(answer) {
          sent += answer.length;
        },
        publish: (_, key) => (key === "key" ? undefined : "wrong"),
        media(kind, _, body) {
          if (kind === "video" ? parseFlvVideo(body) : parseFlvAudio(body)) tags++;
        },
        ended: () => {},
      },
      (length) => new Uint8Array(length),
    );
    publication.receive(HANDSHAKE);
    publication.receive(bytes);
    return { tags, sent };
  },
};
