import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, equalBytes } from "../../../src/base/bytes.ts";
import { Merkle } from "../../../src/base/merkle.ts";
import { isProven, layerRanges } from "../../../src/protocol/swarm/layer-ranges.ts";
import { LayerTree } from "../../../src/protocol/swarm/layer-tree.ts";
import type { HashRange } from "../../../src/wire/peer/hash-message.ts";
import { sha256 } from "../../wire/make-torrent.ts";

const merkle = new Merkle(sha256);

/** All levels of the tree above `pieces` pieces according to BEP 52: padded to a power of two with roots of zeros. */
function someTree(pieces: number, level: number) {
  const hashes = Array.from({ length: pieces }, (_, i) => sha256(Uint8Array.of(i, i >> 8, level)));
  let pad: Uint8Array = new Uint8Array(32);
  for (let i = 0; i < level; i++) pad = sha256(concatBytes([pad, pad]));
  let width = 1;
  while (width < pieces) width *= 2;
  let row: Uint8Array[] = [...hashes, ...Array.from({ length: width - pieces }, () => pad)];
  const rows = [row];
  while (row.length > 1) {
    row = row.flatMap((left, i) => (i % 2 === 0 ? [sha256(concatBytes([left, row[i + 1]!]))] : []));
    rows.push(row);
  }
  return { hashes: concatBytes(hashes), rows, root: row[0]! };
}

for (const [pieces, level] of [
  [2, 0],
  [3, 1],
  [5, 3],
  [511, 0],
  [512, 2],
  [513, 0],
  [1025, 1],
  [1500, 4],
  [4100, 0],
] as const)
  test(`LayerTree: ${pieces} pieces ${level} layers above the leaves, each range answered with its proof`, () => {
    const { hashes, rows, root } = someTree(pieces, level);
    const tree = new LayerTree(hashes, level, merkle);
    const pieceLength = 16_384 * 2 ** level;
    const ranges = layerRanges({ root, firstPiece: 10, pieceCount: pieces }, pieceLength);
    assert.equal(ranges.length, Math.ceil(pieces / 512));
    assert.equal(ranges.at(-1)!.firstPiece + ranges.at(-1)!.pieceCount, 10 + pieces);
    for (const range of ranges) {
      assert.ok(range.length >= 2 && range.index % range.length === 0, "as BEP 52 allows");
      const answer = tree.answer(range)!;
      assert.ok(isProven(range, answer, merkle), `range at ${range.index}`);
      const expected = rows[0]!.slice(range.index, range.index + range.length);
      for (let above = Math.log2(range.length); above < rows.length - 1; above++)
        expected.push(rows[above]![(range.index >> above) ^ 1]!);
      assert.ok(equalBytes(answer, concatBytes(expected)), `range at ${range.index}`);
      for (const at of [0, answer.length >> 1, answer.length - 1]) {
        const wrong = answer.slice();
        wrong[at]! ^= 1;
        assert.equal(isProven(range, wrong, merkle), false, `byte ${at}`);
      }
      const other = { ...range, root: sha256(root) };
      assert.equal(isProven(other, answer, merkle), false, "the hashes of another file");
    }
  });

test("LayerTree: short ranges at any index, with as many proof layers as requested", () => {
  const { hashes, rows } = someTree(1500, 1);
  const tree = new LayerTree(hashes, 1, merkle);
  for (const [index, length, proofLayers] of [
    [0, 1, 0],
    [7, 1, 3],
    [1498, 2, 10],
    [1496, 8, 9],
    [1024, 256, 7],
    [1496, 4, 0],
  ] as const) {
    const answer = tree.answer({ root: hashes, baseLayer: 1, index, length, proofLayers })!;
    const expected = rows[0]!.slice(index, index + length);
    for (let above = Math.log2(length); above <= proofLayers; above++)
      expected.push(rows[above]![(index >> above) ^ 1]!);
    assert.ok(equalBytes(answer, concatBytes(expected)), `${index} ${length} ${proofLayers}`);
  }
});

const GOOD: Omit<HashRange, "root"> = { baseLayer: 1, index: 512, length: 512, proofLayers: 9 };
for (const [what, change, isAnswered] of [
  ["a whole range", {}, true],
  ["the end, cut as BEP 52 allows", { index: 1024, length: 476 }, true],
  ["leaves", { baseLayer: 0 }, false],
  ["a layer above", { baseLayer: 2 }, false],
  ["no hash", { length: 0 }, false],
  ["more than 512", { index: 0, length: 1024 }, false],
  ["a length that is no power of two", { index: 0, length: 476 }, false],
  ["a place that is no multiple of the length", { index: 256 }, false],
  ["what is behind the end", { index: 1536 }, false],
  ["what is far behind the end", { index: 0xffff_fe00 }, false],
  ["a length far beyond all", { index: 0, length: 0xffff_ffff }, false],
  ["the root as proof of itself", { proofLayers: 11 }, false],
  ["proof far above the root", { proofLayers: 0xffff_ffff }, false],
] as const)
  test(`LayerTree: ${what} is ${isAnswered ? "answered" : "not answered"}`, () => {
    const { hashes, root } = someTree(1500, 1);
    const answer = new LayerTree(hashes, 1, merkle).answer({ root, ...GOOD, ...change });
    assert.equal(answer !== undefined, isAnswered);
  });
