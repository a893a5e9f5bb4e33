import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { AudioOrder } from "../../src/remux/audio-order.ts";
import { languagesIn, PAT, pmtOf, VIDEO_PACKET } from "./synthetic-ts.ts";

test("AudioOrder: puts the language first, also by its other code; the other packets stay", () => {
  for (const own of ["ger", "deu"]) {
    const stream = concatBytes([
      PAT,
      pmtOf("eng", own, "fra"),
      VIDEO_PACKET,
      pmtOf("eng", own, "fra"),
      VIDEO_PACKET,
    ]);
    const before = stream.slice();
    const ordered = new AudioOrder("deu").apply(stream);
    assert.deepEqual(languagesIn(ordered), [own, "eng", "fra"]);
    assert.deepEqual(stream, before, "the window is shared");
    for (const at of [0, 2, 4]) {
      const [from, to] = [188 * at, 188 * (at + 1)];
      assert.deepEqual(ordered.subarray(from, to), stream.subarray(from, to));
    }
  }
});

test("AudioOrder: a PMT of several packets, and one without a PAT in the same chunk", () => {
  const many = Array.from({ length: 30 }, (_, i) => (i === 20 ? "deu" : "eng"));
  const order = new AudioOrder("deu");
  assert.equal(pmtOf(...many).length, 2 * 188);
  assert.equal(languagesIn(order.apply(concatBytes([PAT, VIDEO_PACKET, pmtOf(...many)])))[0], "deu");
  const later = order.apply(concatBytes([VIDEO_PACKET, pmtOf("fra", "deu")]));
  assert.deepEqual(languagesIn(concatBytes([PAT, later])), ["deu", "fra"]);
});

test("AudioOrder: returns the same bytes if there is nothing to change", () => {
  const damaged = pmtOf("eng", "deu");
  damaged[20]! ^= 1;
  for (const table of [pmtOf("deu", "eng"), pmtOf("eng", "fra"), pmtOf(), damaged]) {
    const stream = concatBytes([PAT, table, VIDEO_PACKET]);
    assert.equal(new AudioOrder("deu").apply(stream), stream);
  }
});
