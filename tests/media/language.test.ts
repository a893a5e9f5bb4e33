import assert from "node:assert/strict";
import { test } from "node:test";
import { languageCode, languageTag, trackLanguage } from "../../src/media/language.ts";

test("trackLanguage: keeps a three-letter code, and converts a shorter tag to one", () => {
  assert.deepEqual(["ger", "deu", "GER", "de", "de-AT", "", "x1", null].map(trackLanguage), [
    "ger",
    "deu",
    "ger",
    "deu",
    "deu",
    "und",
    "und",
    "und",
  ]);
});

test("languageCode and languageTag: bibliographic and terminological codes are equivalent", () => {
  assert.deepEqual(["ger", "deu", "de"].map(languageCode), ["deu", "deu", "deu"]);
  assert.deepEqual(["ger", "deu", "fre"].map(languageTag), ["de", "de", "fr"]);
});
