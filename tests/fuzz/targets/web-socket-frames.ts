import { assert } from "../../../src/base/assert.ts";
import { concatBytes, latin1Bytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { closeFrame, FrameReader, pongFrame, textFrame } from "../../../src/runtime/web-socket-frames.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const MASK = Uint8Array.of(1, 2, 3, 4);

/** The frames that one side sends, cut into pieces at places that the bytes themselves choose. */
function framesFrom(from: "browser" | "server"): FuzzTarget {
  const mask = from === "browser" ? MASK : undefined;
  const first = from === "browser" ? "\x81\xfe" : "\x81\x7e";
  return {
    name: `web-socket-frames-${from}`,
    corpus: () => [
      textFrame('{"action":"scrape"}', mask),
      concatBytes([textFrame("x".repeat(300), mask), pongFrame(MASK, mask), textFrame("", mask)]),
      concatBytes([textFrame("ü", mask), closeFrame(1000, mask)]),
    ],
    words: [first, "\x01\x80", "\x00\x80", "\x80\x80", "\x89\x80", "\x81\x7f", "\x81\xff"].map(latin1Bytes),
    extremes: () => [
      repeated("\x01\x80\0\0\0\0", from === "browser" ? "\0\x80\0\0\0\0" : "\0\0", "", 60_000),
      repeated("", from === "browser" ? "\x89\x80\0\0\0\0" : "\x89\0", "", 60_000),
      repeated(`${first}\xff\xff`, "a", "", 60_000),
    ],
    run(bytes) {
      const reader = new FrameReader(from);
      const step = 1 + ((bytes[0] ?? 0) % 97);
      let code = 0;
      for (let at = 0; at < bytes.length; at += step) {
        for (const event of reader.read(bytes.slice(at, at + step))) {
          assert(code === 0, "nothing comes after the end");
          if (event.kind === "close") code = event.code;
        }
      }
      if (code > 1000) throw new DecodeError("frames", 0, `code ${code}`);
      return [reader];
    },
  };
}

export const targets = [framesFrom("browser"), framesFrom("server")];
