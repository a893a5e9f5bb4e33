import assert from "node:assert/strict";
import { test } from "node:test";
import { readU16, writeU16 } from "../../src/base/bytes.ts";
import { PictureStates } from "../../src/media/picture-states.ts";
import { decodeSubpicture, parseVobsubHead, subpictureIn } from "../../src/media/vobsub.ts";
import { programStream, subpicture } from "./encode-vobsub.ts";

const IDX = `# VobSub index file, v7
size: 720x480
palette: 000000, ffffff, ff0000, 00ff00
id: en, index: 0
timestamp: 00:00:05:500, filepos: 000000800
timestamp: 00:00:01:000, filepos: 000000000
id: de, index: 3
delay: -00:00:00:500
timestamp: 01:00:00:000, filepos: 00000a000
id: fr, index: 4
`;
const WIDTH = 300;
const PIXELS = Array.from({ length: WIDTH * 5 }, (_, index) =>
  index % 7 === 0 ? index % 4 : index < 700 ? 2 : 1,
);

test("parseVobsubHead reads size, colours, and the places of each language in order", () => {
  const head = parseVobsubHead(IDX);
  assert.deepEqual(
    [head.width, head.height, [...head.palette.subarray(3, 9)]],
    [720, 480, [255, 255, 255, 255, 0, 0]],
  );
  assert.deepEqual(head.languages, [
    {
      index: 0,
      language: "en",
      entries: [
        { seconds: 1, position: 0 },
        { seconds: 5.5, position: 0x800 },
      ],
    },
    { index: 3, language: "de", entries: [{ seconds: 3599.5, position: 0xa000 }] },
  ]);
});

test("decodeSubpicture returns the picture of both fields, and when it disappears", () => {
  const packet = subpicture({ x: 20, y: 400, width: WIDTH, height: 5, pixels: PIXELS });
  const [shown, hidden, ...more] = decodeSubpicture(packet, 10, parseVobsubHead(IDX));
  assert.deepEqual([shown?.seconds, shown?.width, shown?.height, more.length], [10, 720, 480, 0]);
  const [part] = shown!.parts;
  assert.deepEqual([part!.x, part!.y, part!.width, part!.height], [20, 400, WIDTH, 5]);
  const pixels: number[] = [];
  for (let at = 0; at < part!.runs.length; at += 2)
    pixels.push(...Array<number>(part!.runs[at]!).fill(part!.runs[at + 1]!));
  assert.deepEqual(pixels, PIXELS);
  assert.deepEqual([...part!.palette], [0, 0, 0, 0, 255, 255, 255, 255, 255, 0, 0, 255, 0, 255, 0, 255]);
  assert.deepEqual([Math.abs(hidden!.seconds - 12) < 0.02, hidden!.parts], [true, []]);
});

test("subpictureIn joins the packets of one stream of a .sub file", () => {
  const packet = subpicture({
    x: 0,
    y: 0,
    width: WIDTH,
    height: 40,
    pixels: Array.from({ length: WIDTH * 40 }, (_, i) => (i * i) % 4),
  });
  assert.ok(packet.length > 4000, "several packets");
  const stream = programStream(packet, 3);
  assert.deepEqual(subpictureIn(stream, 3), packet);
  assert.equal(subpictureIn(stream, 2), undefined);
  assert.equal(subpictureIn(stream.subarray(0, -1), 3), undefined);
});

test("decodeSubpicture ignores what is damaged", () => {
  const packet = subpicture({ x: 0, y: 0, width: 4, height: 4, pixels: Array<number>(16).fill(1) });
  for (let length = 0; length < packet.length; length++)
    decodeSubpicture(packet.subarray(0, length), 0, parseVobsubHead(""));
  const endless = Uint8Array.of(0, 20, 0, 4, 0, 0, 0, 4, 0xff);
  assert.deepEqual(decodeSubpicture(endless, 0, parseVobsubHead("")), []);
});

test("decodeSubpicture and PictureStates stop at small packets that draw large pictures again and again", () => {
  const head = parseVobsubHead("");
  const picture = { x: 0, y: 0, width: 3000, height: 2000, pixels: [] };
  const packet = subpicture(picture);
  const [from, to] = [readU16(packet, 2), readU16(packet, readU16(packet, 2) + 2)];
  const many = new Uint8Array(4 + 10 * (to - from));
  many.set([many.length >> 8, many.length & 255, 0, 4]);
  for (let at = 4; at < many.length; at += to - from) {
    many.set(packet.subarray(from, to), at);
    writeU16(many, at + 2, at + to - from);
  }
  assert.equal(decodeSubpicture(many, 0, head).length, 1);
  const states = new PictureStates({ from: 1_000, to: 1_060 });
  let added = 0;
  while (added < 100 && states.addVobsub(decodeSubpicture(packet, added, head), undefined)) added++;
  assert.ok(added > 2 && added < 10, `${added} pictures`);
});
