import type { UnixSeconds } from "../../src/base/time.ts";
import type { Download, Downloads } from "../../src/downloads/download-contract.ts";
import { INFOHASH } from "./fake-inspector.ts";

/** One download, which accepts every call. */
export function fakeDownloads(): Downloads {
  const download: Download = {
    infohash: INFOHASH,
    name: "Film",
    addedAt: 1_800_000_000 as UnixSeconds,
    files: [[0, 0]],
    state: "downloading",
    problem: null,
    size: 100,
    heldBytes: 40,
    limits: { upload: 0, download: 0 },
  };
  return {
    list: () => [download],
    add: async () => download,
    pause: async () => download,
    resume: async () => download,
    limit: async () => {},
    remove: async () => {},
  };
}
