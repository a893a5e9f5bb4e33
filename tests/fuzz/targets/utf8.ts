import { assert } from "../../../src/base/assert.ts";
import { decodeUtf8, encodeUtf8 } from "../../../src/base/utf8.ts";
import type { FuzzTarget } from "../contract.ts";

export const target: FuzzTarget = {
  name: "utf8",
  corpus: () => ["", "abc", "é", "ä€𝄞", "\u{10ffff}"].map(encodeUtf8),
  run(bytes) {
    const text = decodeUtf8(bytes);
    assert(
      text === new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
      "decodes as the platform does",
    );
    assert(decodeUtf8(encodeUtf8(text)) === text, "encodes what it decoded");
    return text;
  },
};
