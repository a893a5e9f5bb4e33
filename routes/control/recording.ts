import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Recording, Recordings } from "../../src/recordings/recording-contract.ts";
import type { RouteDependencies } from "../http/dependencies.ts";
import { itemOf, unixNow } from "./guide.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { integer, required, text } from "./params.ts";

/** The duration of a recording without a programme and without a stop time. */
const DEFAULT_SECONDS = 3_600;

const recordingResult = z.object({
  id: z.int(),
  item_id: z.int(),
  title: z.string().describe("The programme, or the channel"),
  channel: z.string(),
  start: z.int().describe("UNIX time"),
  stop: z.int(),
  state: z
    .enum(["planned", "recording", "done", "failed"])
    .describe("failed: nothing was recorded; a recording with gaps is done"),
  problem: z.string().nullable(),
  bytes: z.int(),
  url: z.string().nullable().describe("The file, also while it grows; null before the first data"),
});

const idParams = z.object({ id: required(integer).describe("An id from recording_list") });

/** Recordings of channels, which continue after a restart of the engine. */
export const recordingMethods = [
  controlMethod({
    name: "recording_list",
    summary: "Lists the recordings: planned, running and finished",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.array(recordingResult),
    run: async (_, { dependencies, base }) =>
      recordingsOf(dependencies)
        .list()
        .map((recording) => presentRecording(recording, base)),
  }),
  controlMethod({
    name: "recording_add",
    summary: "Records a channel of the playlist: at once, or from start to stop",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      id: required(integer).describe("The item"),
      start: integer.describe("UNIX time; default: now"),
      stop: integer.describe(
        "UNIX time; default: the end of the programme at start, else an hour after start",
      ),
      title: text.describe("Default: the programme at start, else the channel"),
    }),
    result: recordingResult,
    async run({ id, start, stop, title }, { dependencies, library, allowPrivateUrls, base }) {
      const recordings = recordingsOf(dependencies);
      const item = await itemOf(library, id);
      const from = (start ?? unixNow()) as UnixSeconds;
      const [programme] = await library.guide.programmes(item, from, (from + 1) as UnixSeconds, 1);
      const channel = item.displayTitle || item.title;
      const recording = await recordings.add({
        itemId: id,
        title: title ?? programme?.title ?? channel,
        channel,
        start: from,
        stop: (stop ?? programme?.stop ?? from + DEFAULT_SECONDS) as UnixSeconds,
        allowPrivateUrls,
      });
      return presentRecording(recording, base);
    },
  }),
  controlMethod({
    name: "recording_stop",
    summary: "Ends a recording and keeps what was recorded; removes one that has not begun",
    isExtra: true,
    ...PRIVATE,
    params: idParams,
    result: okResult,
    async run({ id }, { dependencies }) {
      await recordingsOf(dependencies).stop(id);
      return "ok";
    },
  }),
  controlMethod({
    name: "recording_delete",
    summary: "Deletes a recording with its file",
    isExtra: true,
    ...PRIVATE,
    params: idParams,
    result: okResult,
    async run({ id }, { dependencies }) {
      await recordingsOf(dependencies).remove(id);
      return "ok";
    },
  }),
];

function recordingsOf({ recordings }: RouteDependencies): Recordings {
  if (recordings === undefined) throw new SluiceError("access_denied", "recording is not available here");
  return recordings;
}

/** Converts a recording to JSON; `base` is `http://host:port`. */
export function presentRecording(recording: Recording, base: string): z.output<typeof recordingResult> {
  const { id, itemId, title, channel, start, stop, state, problem, bytes } = recording;
  const url = bytes === 0 ? null : `${base}/recordings/${id}.ts`;
  return { id, item_id: itemId, title, channel, start, stop, state, problem, bytes, url };
}
