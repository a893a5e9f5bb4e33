import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import { languageCode } from "../media/language.ts";
import { findDisplaySet, PgsDecoder, readDisplaySet, supSeconds } from "../media/pgs.ts";
import { PGS_EPOCH_SECONDS, PICTURE_LIMIT_BYTES, PictureStates } from "../media/picture-states.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import { decodeSubtitles } from "../media/subtitle-file.ts";
import { decodeSubpicture, parseVobsubHead, subpictureIn, type VobsubHead } from "../media/vobsub.ts";
import type { Media } from "../remux/contract.ts";
import type { ContentFile, Transfer } from "../transfer/contract.ts";
import type { FilmPictures } from "./contract.ts";
import { describeLabel, FILES_LIMIT, sidecarFiles } from "./film-subtitles.ts";

/** Limits of files: an `.idx` file with many languages, `.sup` and `.sub` files of a long film. */
const INDEX_LIMIT_BYTES = 4 * 1024 * 1024;
const PICTURES_LIMIT_BYTES = 512 * 1024 * 1024;
/** Bytes per probe for a time in a `.sup` file, and the distance from which reading on costs less than a probe. */
const PROBE_BYTES = 128 * 1024;
const NEAR_BYTES = 512 * 1024;
/** A range of time with more data is cut. */
const READ_LIMIT_BYTES = 16 * 1024 * 1024;
/** Limit of a subpicture packet with the headers of the program stream around it. */
const SUBPICTURE_BYTES = 96 * 1024;

/** Returns the subtitles of a film that are pictures: the tracks in its file, then the files of the same content that belong to it. */
export async function filmPictures(
  transfer: Transfer,
  film: ContentFile,
  media: Media,
  signal: AbortSignal | undefined,
): Promise<FilmPictures[]> {
  const own = [...media.tracks.entries()].flatMap(([number, track]): FilmPictures[] => {
    if (!track.isPicture || !media.pictures) return [];
    const { codec, language, title, isForced = false } = track;
    const states: FilmPictures["states"] = (seconds, stop) => media.pictures!(number, seconds, stop);
    return [{ number, codec, language, title, isForced, states }];
  });
  // The numbers after those of text subtitles.
  const first = media.tracks.length + FILES_LIMIT;
  const files: FilmPictures[] = [];
  for (const { file, label } of sidecarFiles(transfer.files, film, isPictureFile)) {
    const described = describeLabel(label);
    if (/\.sup$/i.test(file.name)) {
      if (file.size > PICTURES_LIMIT_BYTES) continue;
      const states: FilmPictures["states"] = (seconds, stop) => supStates(transfer, file, seconds, stop);
      files.push({ number: first + files.length, codec: "pgs", ...described, states });
      continue;
    }
    const pictures = transfer.files.find(({ name }) => name === file.name.replace(/\.idx$/i, ".sub"));
    if (!pictures || file.size > INDEX_LIMIT_BYTES) continue;
    const head = parseVobsubHead(
      decodeSubtitles(await readRange(transfer, file, { start: 0, end: file.size }, signal)),
    );
    for (const { index, language, entries } of head.languages)
      files.push({
        number: first + files.length,
        codec: "vobsub",
        ...described,
        language: languageCode(language) === "und" ? described.language : languageCode(language),
        states: (seconds, stop) => vobsubStates(transfer, pictures, { head, index, entries }, seconds, stop),
      });
  }
  return [...own, ...files];
}

function isPictureFile(name: string): true | undefined {
  return /\.(?:sup|idx)$/i.test(name) || undefined;
}

/** Finds the time in a `.sup` file, which has no index, by bisection, and decodes from there. */
async function supStates(
  transfer: Transfer,
  file: ContentFile,
  seconds: SecondsRange,
  signal: AbortSignal | undefined,
): Promise<readonly PictureState[]> {
  const read = (start: number, bytes: number) =>
    readRange(transfer, file, { start, end: start + bytes }, signal);
  let [low, high] = [0, file.size];
  while (high - low > NEAR_BYTES) {
    const middle = Math.floor((low + high) / 2);
    const bytes = await read(middle, PROBE_BYTES);
    const at = findDisplaySet(bytes, 0);
    if (at >= 0 && supSeconds(bytes, at) < seconds.from - PGS_EPOCH_SECONDS) low = middle + at;
    else high = middle;
  }
  const collected = new PictureStates(seconds);
  const decoder = new PgsDecoder();
  let bytes: Uint8Array = new Uint8Array(0);
  for (let at = low; at < file.size && at < low + READ_LIMIT_BYTES; ) {
    const next = await read(at, NEAR_BYTES);
    at += next.length;
    bytes = concatBytes([bytes, next]);
    let used = 0;
    for (let place = findDisplaySet(bytes, 0); place >= 0; place = findDisplaySet(bytes, used)) {
      const set = readDisplaySet(bytes, place);
      used = place;
      if (!set && bytes.length - place < PICTURE_LIMIT_BYTES && at < file.size) break;
      used = set?.end ?? place + 1;
      if (!set) continue;
      if (set.seconds >= seconds.to) return collected.states;
      const state = decoder.push(set.segments, set.seconds);
      if (state && !collected.add(state)) return collected.states;
    }
    bytes = bytes.slice(used);
  }
  return collected.states;
}

/** A language of an `.idx` file. */
interface VobsubTrack {
  readonly head: VobsubHead;
  readonly index: number;
  readonly entries: VobsubHead["languages"][number]["entries"];
}

async function vobsubStates(
  transfer: Transfer,
  file: ContentFile,
  { head, index, entries }: VobsubTrack,
  seconds: SecondsRange,
  signal: AbortSignal | undefined,
): Promise<readonly PictureState[]> {
  const collected = new PictureStates(seconds);
  for (const { seconds: at, position: start } of entries) {
    if (at < seconds.from || start >= file.size) continue;
    if (at >= seconds.to) break;
    const bytes = await readRange(transfer, file, { start, end: start + SUBPICTURE_BYTES }, signal);
    const packet = subpictureIn(bytes, index);
    if (packet && !collected.addVobsub(decodeSubpicture(packet, at, head), undefined)) break;
  }
  return collected.states;
}

function readRange(
  transfer: Transfer,
  { index, size }: ContentFile,
  { start, end }: ByteRange,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  return transfer.source(index).read({ start, end: Math.min(size, end) }, signal ? { signal } : {});
}

/** Returns the pictures with this number; throws `no_such_segment`. */
export function picturesAt(all: readonly FilmPictures[], number: number): FilmPictures {
  const found = all.find((one) => one.number === number);
  if (found) return found;
  throw new SluiceError("no_such_segment", `the film has no pictures ${number}`);
}
