import { SluiceError } from "../base/errors.ts";
import type { Media } from "./contract.ts";
import type { RawFormat } from "./sniff.ts";

/** Describes a file that is not remuxed, such as AVI or FLAC: players get the file itself. */
export function rawMedia({ name, mime }: RawFormat): Media {
  const problem = new SluiceError(
    "unsupported_container",
    `${name} files are not remuxed; request /ace/getstream, which serves the file itself, or its URL under /files/`,
  );
  const refuse = () => Promise.reject(problem);
  return {
    container: "raw",
    rawMime: mime,
    durationSeconds: 0,
    tracks: [],
    zeroTicks: 0,
    segments: [],
    soundSlices: [],
    tsProblem: problem,
    fmp4Problem: problem,
    silentIn: [],
    separateAudio: { ts: [], fmp4: [] },
    remux: refuse,
    fmp4Init: refuse,
    cues: refuse,
    close() {},
  };
}
