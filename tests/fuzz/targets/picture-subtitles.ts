import { assert } from "../../../src/base/assert.ts";
import { decodeUtf8, encodeUtf8 } from "../../../src/base/utf8.ts";
import { findDisplaySet, PgsDecoder, readDisplaySet } from "../../../src/media/pgs.ts";
import type { PictureState } from "../../../src/media/picture-subtitles.ts";
import { DvbDecoder } from "../../../src/media/subtitles/dvb-subtitles.ts";
import { decodeSubpicture, parseVobsubHead, subpictureIn } from "../../../src/media/vobsub.ts";
import { bits, colours, dvbData, END, object, page, region } from "../../media/encode-dvb.ts";
import { pgsClear, pgsPicture, supOf } from "../../media/encode-pgs.ts";
import { subpicture } from "../../media/encode-vobsub.ts";
import type { FuzzTarget } from "../contract.ts";

/** The runs of a part fill its area, and name colours of its palette. */
function check(states: readonly PictureState[]): void {
  for (const { parts } of states)
    for (const { width, height, runs, palette } of parts) {
      let pixels = 0;
      for (let at = 0; at < runs.length; at += 2) pixels += runs[at]!;
      assert(pixels === width * height, "runs fill the area");
      assert(palette.length === 16 || palette.length === 1024, "a palette of RGBA");
    }
}

const PICTURE = { width: 8, height: 4, x: 3, y: 5, pixels: [...Array(32).keys()].map((index) => index % 3) };

const pgs: FuzzTarget = {
  name: "pgs",
  corpus: () => [
    supOf([
      [1, pgsPicture(PICTURE)],
      [2, pgsClear()],
    ]),
    supOf([[0, pgsPicture({ ...PICTURE, crop: PICTURE })]]),
  ],
  words: [
    Uint8Array.of(0x50, 0x47),
    Uint8Array.of(0x16, 0, 19),
    Uint8Array.of(0x15),
    Uint8Array.of(0x80, 0, 0),
  ],
  run(bytes) {
    const decoder = new PgsDecoder();
    const states: PictureState[] = [];
    let shown = 0;
    for (let at = findDisplaySet(bytes, 0); at >= 0 && shown < 8; shown++) {
      const set = readDisplaySet(bytes, at);
      const state = set && decoder.push(set.segments, set.seconds);
      if (state) states.push(state);
      at = findDisplaySet(bytes, set?.end ?? at + 1);
    }
    const direct = new PgsDecoder().push(bytes.subarray(0, 4096), 0);
    check(direct ? [...states, direct] : states);
    return states;
  },
};

const IDX =
  "size: 720x576\npalette: 000000, ffffff, 0000ff\nid: en, index: 0\ndelay: 00:00:01:000\ntimestamp: 00:00:01:000, filepos: 000000000\n";

const vobsub: FuzzTarget = {
  name: "vobsub",
  corpus: () => [subpicture(PICTURE), encodeUtf8(IDX)],
  words: [
    Uint8Array.of(0, 0, 1, 0xbd),
    Uint8Array.of(0, 0, 1, 0xba),
    encodeUtf8("timestamp: "),
    encodeUtf8("palette: "),
  ],
  run(bytes) {
    const head = parseVobsubHead(decodeUtf8(bytes));
    assert(head.palette.length === 48, "16 colours");
    const states = decodeSubpicture(bytes, 0, head);
    check(states);
    const packet = subpictureIn(bytes, 0);
    if (packet) check(decodeSubpicture(packet, 0, head));
    return states;
  },
};

const LINE = [0x11, ...bits("0001 0000 1 0 01 1111 0000 1 1 11 00000001 0001 0000 0 000"), 0xf0];
const EPOCH = [page([[4, 50, 60]]), region(4, [40, 4], 4, 0), colours([[1, 235, 128, 128, 0]])];

const dvb: FuzzTarget = {
  name: "dvb-subtitles",
  corpus: () => [
    dvbData(...EPOCH, object(LINE), END),
    dvbData(page([[4, 0, 0]]), region(4, [8, 2], 8, 0), object([0x12, 1, 0, 0x83, 5, 0, 0, 0xf0]), END),
    dvbData(
      page([[4, 0, 0]], { state: 0 }),
      region(4, [8, 2], 2),
      object([0x10, ...bits("01 00 1 001 10 00 0 0 00"), 0xf0]),
    ),
  ],
  words: [
    ...[0x10, 0x11, 0x12, 0x13, 0x14, 0x80].map((type) => Uint8Array.of(0x0f, type, 0, 1, 0)),
    ...[0x10, 0x11, 0x12, 0x20, 0x21, 0x22, 0xf0].map((type) => Uint8Array.of(type)),
  ],
  run(bytes) {
    const decoder = new DvbDecoder({ composition: 1, ancillary: 2 });
    const half = bytes.length >> 1;
    const data = [bytes, bytes.subarray(half), Uint8Array.of(0x20, 0, ...bytes.subarray(0, half))];
    const states = data.flatMap((unit, index) => decoder.push(unit, index) ?? []);
    check(states);
    return states;
  },
};

export const targets: FuzzTarget[] = [pgs, vobsub, dvb];
