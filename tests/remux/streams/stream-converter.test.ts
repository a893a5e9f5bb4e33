import assert from "node:assert/strict";
import { test } from "node:test";
import { languageCode } from "../../../src/media/language.ts";
import type { TsStream } from "../../../src/media/ts-programme.ts";
import { inLanguage } from "../../../src/remux/streams/stream-converter.ts";

test("inLanguage: chooses the audio by both codes of ISO 639-2, else the first one", () => {
  const audio = ["eng", "ger", "fra", "und"].map((language, pid) => ({ language, pid }) as TsStream);
  const chosen = (tag: string) => inLanguage(languageCode(tag))(audio)?.language;
  const tags = ["de", "ger", "deu", "fr", "fre", "en", "ru"];
  assert.deepEqual(tags.map(chosen), ["ger", "ger", "ger", "fra", "fra", "eng", "eng"]);
  assert.equal(inLanguage("deu")([]), undefined);
});
