import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { filmSubtitles } from "../../src/playback/film-subtitles.ts";
import type { ContentFile, Transfer } from "../../src/transfer/contract.ts";
import { FakeMedia, track } from "../engine/fake-media.ts";

const MB = 1_000_000;
const SRT = "1\n00:00:01,000 --> 00:00:02,000\none\n\n2\n00:00:13,000 --> 00:00:14,000\ntwo\n";

/** A transfer with these files; videos are large. `reads` counts the reads of subtitle files. */
function transferOf(names: readonly string[]) {
  const state = { reads: 0 };
  const files = names.map((name, index): ContentFile => {
    const isPlayable = /\.mkv$/.test(name);
    const size = isPlayable ? 700 * MB : SRT.length;
    return { index, name, size, offset: 0, mime: "", isPlayable };
  });
  const source = () => ({
    size: SRT.length,
    read: async () => {
      state.reads++;
      return encodeUtf8(SRT);
    },
  });
  return { transfer: { files, source } as unknown as Transfer, files, state };
}

/** Language, title and `forced` of the subtitles of the first file. */
function labelsOf(...names: readonly string[]): string[] {
  const { transfer, files } = transferOf(names);
  return filmSubtitles(transfer, files[0]!, new FakeMedia()).map(
    ({ language, title, isForced }) => `${language} ${title ?? "-"}${isForced ? " forced" : ""}`,
  );
}

test("filmSubtitles: files that are named like the film, with language and kind from the rest of the name", () => {
  assert.deepEqual(
    labelsOf("F/Film.mkv", "F/Film.en.srt", "F/Film.pt-BR.forced.ass", "F/film.SDH.eng.vtt", "F/Film.srt"),
    ["eng -", "por BR forced forced", "eng SDH", "und -"],
  );
});

test("filmSubtitles: folders of subtitles, by the name of the film if there are several films", () => {
  assert.deepEqual(labelsOf("Film.mkv", "Subs/2_English.srt", "Subs/The French.srt"), ["eng -", "fra The"]);
  assert.deepEqual(labelsOf("A 1.mkv", "A 2.mkv", "Subs/A 1/3_German.srt", "Subs/A 2/3_Dutch.srt", "x.srt"), [
    "deu -",
  ]);
});

test("filmSubtitles: files of other folders and other formats do not belong to the film", () => {
  assert.deepEqual(
    labelsOf("F/Film.mkv", "G/Film.en.srt", "F/Extras/Film.en.srt", "F/Film.sub", "F/Film.nfo"),
    [],
  );
});

test("filmSubtitles: the cues of a file by the segments of the film; the file is read once", async () => {
  const { transfer, files, state } = transferOf(["Film.mkv", "Film.srt"]);
  const media = new FakeMedia();
  media.tracks = [
    ...media.tracks,
    track("subtitle", "subrip"),
    { ...track("subtitle", "pgs"), isOpaque: true },
  ];
  const [own, file, ...more] = filmSubtitles(transfer, files[0]!, media);
  assert.deepEqual([own?.number, file?.number, more], [2, 4, []]);
  const texts = async (index: number) => (await file!.cues(index, undefined)).map(({ text }) => text);
  assert.deepEqual([await texts(0), await texts(1), await texts(2)], [["one"], ["two"], []]);
  assert.equal(state.reads, 1);
  assert.equal((await own!.cues(3, undefined))[0]?.text, "track 2 segment 3");
});
