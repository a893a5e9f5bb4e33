import { SluiceError } from "../../src/base/errors.ts";
import type {
  Recording,
  Recordings,
  SeriesRule,
  SharedRecording,
} from "../../src/recordings/recording-contract.ts";
import { OpenedRecordings } from "../../src/recordings/recording-media.ts";
import { openMedia } from "../../src/remux/open-media.ts";

/** The file of the first recording. */
export const RECORDED = Uint8Array.from({ length: 300_000 }, (_, i) => i & 0xff);

/** Recordings in memory, the first of which has a file. `openFiles` counts the files that are not closed. */
export function fakeRecordings(file = RECORDED) {
  const opened = new OpenedRecordings(openMedia);
  const list: Recording[] = [];
  const rules: SeriesRule[] = [];
  const shared = new Map<number, SharedRecording>();
  let open = 0;
  const known = (id: number) => {
    const found = list.find((each) => each.id === id);
    if (!found) throw new SluiceError("unknown_item", `there is no recording ${id}`);
    return found;
  };
  const recordings: Recordings = {
    list: () => list,
    async add({
      allowPrivateUrls: _,
      programme = null,
      padding = { before: 0, after: 0 },
      seriesId = null,
      ...request
    }) {
      const id = list.length + 1;
      const bytes = id === 1 ? file.length : 0;
      list.push({
        ...request,
        programme,
        padding,
        seriesId,
        id,
        bytes,
        state: id === 1 ? "recording" : "planned",
        problem: null,
        matroska: null,
      });
      return list.at(-1)!;
    },
    async change() {},
    series: {
      list: () => rules,
      async add({ allowPrivateUrls: _, ...rule }) {
        rules.push({ ...rule, id: rules.length + 1 });
        return rules.at(-1)!;
      },
      async remove(id) {
        rules.splice(
          rules.findIndex((rule) => rule.id === id),
          1,
        );
      },
    },
    shares: {
      get: (id) => shared.get(id),
      start(id) {
        known(id);
        const magnet = `magnet:?xt=urn:btih:${"d".repeat(40)}`;
        shared.set(id, { state: "shared", share: 1, problem: null, magnet, uploadedBytes: 7 });
      },
      async stop(id) {
        shared.delete(id);
      },
    },
    async stop(id) {
      known(id);
    },
    async remove(id) {
      list.splice(list.indexOf(known(id)), 1);
    },
    async convert(id) {
      Object.assign(known(id), { matroska: { state: "ready", share: 1, bytes: file.length, problem: null } });
    },
    openMatroska: async (id) => (known(id).matroska === null ? undefined : recordings.open(id)),
    media: async (id, bytes) => opened.media(known(id), bytes, () => recordings.open(id)),
    async open(id) {
      const recording = known(id);
      if (recording.bytes === 0) return undefined;
      open++;
      return {
        recording,
        bytes: recording.bytes,
        read: async (at, into) => into.set(file.subarray(at, at + into.length)),
        async close() {
          open--;
        },
      };
    },
  };
  return { recordings, openFiles: () => open };
}
