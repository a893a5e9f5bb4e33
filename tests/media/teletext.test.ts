import assert from "node:assert/strict";
import { test } from "node:test";
import { TeletextDecoder } from "../../src/media/teletext.ts";
import { boxed, type SentPage, teletextLines } from "./encode-teletext.ts";

/** Decodes what was sent at 1 s, 2 s and so on. */
function states(language: string, ...sent: readonly SentPage[]) {
  const decoder = new TeletextDecoder({ magazine: 8, page: 0x88, language });
  for (const [index, page] of sent.entries()) decoder.push(pesData(teletextLines(page)), index + 1);
  decoder.flush();
  return decoder.states.map(({ seconds, text }) => [seconds, text]);
}

function pesData(lines: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.of(0x10, ...lines.flatMap((line) => [0x03, 44, 0xe7, 0xe4, ...line]));
}

function textOf(language: string, sent: Omit<SentPage, "page">): string | undefined {
  return states(language, { page: 0x88, ...sent })[0]?.[1] as string | undefined;
}

test("TeletextDecoder returns the boxed text of its page until the page is erased", () => {
  const shown = { page: 0x88, rows: { 20: boxed("Where are you?"), 22: boxed("\u0003Here!") } };
  const other = { page: 0x89, rows: { 20: boxed("Autre langue") } };
  assert.deepEqual(states("eng", shown, other, shown, { page: 0x88 }), [
    [1, "Where are you?\nHere!"],
    [4, ""],
  ]);
});

test("TeletextDecoder shows the text outside of boxes only if the page has none", () => {
  assert.equal(textOf("eng", { rows: { 20: "HEADLINE", 22: boxed("Text") } }), "Text");
  assert.equal(textOf("eng", { rows: { 20: "HEADLINE" } }), "HEADLINE");
});

test("TeletextDecoder hides the row below double height, concealed text and mosaics", () => {
  assert.equal(textOf("eng", { rows: { 20: boxed("above"), 21: "below" } }), "above");
  assert.equal(textOf("eng", { rows: { 20: "a\u0018b\u0003c" } }), "a c");
  assert.equal(textOf("eng", { rows: { 20: "a\u0011123@\u0001d" } }), "a @ d");
});

test("TeletextDecoder reads national options and the character set of the language", () => {
  const rows = { 20: "#$@[\\]^_`{|}~" };
  const expected = [
    ["eng", 0, "£$@←½→↑#―¼‖¾÷"],
    ["ger", 1, "#$§ÄÖÜ^_°äöüß"],
    ["fre", 4, "éïàëêùî#èâôûç"],
    ["pol", 0, "#ńąŻŚŁćóężśłź"],
    ["tur", 6, "₺ğİŞÖÇÜĞışöçü"],
    ["hrv", 5, "#ËČĆŽĐŠëčćžđš"],
  ] as const;
  for (const [language, option, text] of expected) assert.equal(textOf(language, { option, rows }), text);
  assert.equal(textOf("rus", { option: 4, rows: { 20: "pRIWET, MIR & ]" } }), "пРИВЕТ, МИР ы Щ");
  assert.equal(textOf("ukr", { option: 5, rows: { 20: "kIW" } }), "кИВ");
  assert.equal(textOf("ell", { option: 7, rows: { 20: "Cajo SJ" } }), "Γακο ΣΚ".normalize("NFC"));
});

test("TeletextDecoder reads the character sets that a page designates, and switches between them", () => {
  const [russian, greek] = [(4 << 3) | 4, (6 << 3) | 7];
  assert.equal(textOf("und", { option: 4, sets: [russian, greek], rows: { 20: "A\u001ba" } }), "А α");
});

test("TeletextDecoder puts accents and characters of enhancement packets into the text", () => {
  const triplets = [
    [60, 0x04, 0],
    [0, 0x12, 0x65],
    [1, 0x1f, 0x63],
    [2, 0x0f, 0x55],
    [3, 0x10, 0x2a],
    [60, 0x1f, 0],
    [5, 0x12, 0x65],
  ] as const;
  assert.equal(textOf("eng", { rows: { 20: "ec?? e" }, triplets }), "éč♪@ e");
});

test("TeletextDecoder corrects one wrong bit and ignores what is damaged", () => {
  const lines = teletextLines({ page: 0x88, rows: { 20: "Text" } });
  for (const line of lines) line[0]! ^= 0x10;
  lines[1]![3]! ^= 1;
  const decoder = new TeletextDecoder({ magazine: 8, page: 0x88, language: "eng" });
  decoder.push(pesData(lines), 1);
  decoder.push(Uint8Array.of(0x10, 3, 44, 0xe7, 0xe4, 1, 2), 2);
  decoder.push(Uint8Array.of(0x20, 3), 3);
  assert.deepEqual(decoder.states, [{ seconds: 1, text: "T xt", mark: 0 }]);
});
