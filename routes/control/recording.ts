import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type {
  Recording,
  Recordings,
  SeriesRule,
  SharedRecording,
} from "../../src/recordings/recording-contract.ts";
import type { RouteDependencies } from "../http/dependencies.ts";
import { itemOf, unixNow } from "./guide.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { bool, integer, required, text } from "./params.ts";

/** The duration of a recording without a programme and without a stop time. */
const DEFAULT_SECONDS = 3_600;
/** As for recordings. */
const MAX_PADDING_SECONDS = 3 * 3_600;

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
  subtitle: z.string(),
  episode: z.string(),
  description: z.string(),
  series_id: z.int().nullable().describe("The series that planned it; null: the user did"),
  bytes: z.int(),
  url: z.string().nullable().describe("The file, also while it grows; null before the first data"),
  matroska: z
    .object({
      state: z.enum(["converting", "ready", "failed"]),
      share: z.number().describe("The share that is done, 0 to 1"),
      bytes: z.int(),
      problem: z.string().nullable(),
      url: z.string().nullable(),
    })
    .nullable()
    .describe("Its copy in Matroska; null: there is none"),
  torrent: z
    .object({
      state: z.enum(["preparing", "shared", "failed"]),
      share: z.number().describe("The share of the file that is hashed, 0 to 1"),
      problem: z.string().nullable(),
      magnet: z.string().nullable().describe("The link; null until it is shared"),
      uploaded: z.int().describe("Bytes that peers have received since the start of the engine"),
    })
    .nullable()
    .describe("The torrent as which it is shared; null: it is not"),
});

const paddings = {
  before: integer.describe("Seconds to record before the start; default 0"),
  after: integer.describe("Seconds to record after the end; default 0"),
};

const seriesResult = z.object({
  id: z.int(),
  title: z.string(),
  item_id: z.int().nullable().describe("The channel; null: all channels of the playlist"),
  before: z.int().describe("Seconds"),
  after: z.int().describe("Seconds"),
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
    async run(_, { dependencies, base }) {
      const recordings = recordingsOf(dependencies);
      return recordings.list().map((recording) => presentRecording(recording, recordings, base));
    },
  }),
  controlMethod({
    name: "recording_add",
    summary:
      "Records a channel of the playlist: at once, or from start to stop. What is kept for catch-up is recorded from its start",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      id: required(integer).describe("The item"),
      start: integer.describe("UNIX time; default: now"),
      stop: integer.describe(
        "UNIX time; default: the end of the programme at start, else an hour after start",
      ),
      title: text.describe("Default: the programme at start, else the channel"),
      ...paddings,
    }),
    result: recordingResult,
    async run(
      { id, start, stop, title, before = 0, after = 0 },
      { dependencies, library, allowPrivateUrls, base },
    ) {
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
        // A part of a programme does not move with it.
        ...(programme?.start === from && { programme }),
        padding: { before, after },
        allowPrivateUrls,
      });
      return presentRecording(recording, recordings, base);
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
    name: "recording_convert",
    summary:
      "Copies a recording that is over into a Matroska file with its title and guide data as tags; recording_list reports the progress",
    isExtra: true,
    ...PRIVATE,
    params: idParams,
    result: okResult,
    async run({ id }, { dependencies }) {
      await recordingsOf(dependencies).convert(id);
      return "ok";
    },
  }),
  controlMethod({
    name: "recording_share",
    summary:
      "Shares a recording that is over as a private torrent, whose link recording_list returns, or ends that; later starts share it again",
    isExtra: true,
    ...PRIVATE,
    params: idParams.extend({ value: required(bool) }),
    result: okResult,
    async run({ id, value }, { dependencies }) {
      const { shares } = recordingsOf(dependencies);
      if (value) shares.start(id);
      else await shares.stop(id);
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
  controlMethod({
    name: "recording_series_list",
    summary: "Lists the series that are recorded",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.array(seriesResult),
    run: async (_, { dependencies }) => recordingsOf(dependencies).series.list().map(presentSeries),
  }),
  controlMethod({
    name: "recording_series_add",
    summary: "Records every programme with a title, each episode once; follows changes of the guide",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      title: required(text).describe("The whole title; case and accents are ignored"),
      id: integer.describe("An item: only on its channel; default: on all channels of the playlist"),
      ...paddings,
    }),
    result: seriesResult,
    async run({ title, id, before = 0, after = 0 }, { dependencies, library, allowPrivateUrls }) {
      const itemId = id === undefined ? null : (await itemOf(library, id)).id;
      const { series } = recordingsOf(dependencies);
      const isPadded = [before, after].every((seconds) => seconds >= 0 && seconds <= MAX_PADDING_SECONDS);
      if (!isPadded) throw new SluiceError("bad_parameter", "before, after: expected at most three hours");
      return presentSeries(await series.add({ title, itemId, padding: { before, after }, allowPrivateUrls }));
    },
  }),
  controlMethod({
    name: "recording_series_delete",
    summary: "Removes a series and its planned recordings; finished ones stay",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ id: required(integer).describe("An id from recording_series_list") }),
    result: okResult,
    async run({ id }, { dependencies }) {
      await recordingsOf(dependencies).series.remove(id);
      return "ok";
    },
  }),
];

function presentSeries({ id, title, itemId, padding }: SeriesRule): z.output<typeof seriesResult> {
  return { id, title, item_id: itemId, ...padding };
}

function recordingsOf({ recordings }: RouteDependencies): Recordings {
  if (recordings === undefined) throw new SluiceError("access_denied", "recording is not available here");
  return recordings;
}

/** Converts a recording to JSON; `base` is `http://host:port`. */
export function presentRecording(
  recording: Recording,
  { shares }: Pick<Recordings, "shares">,
  base: string,
): z.output<typeof recordingResult> {
  const { id, itemId, title, channel, start, stop, state, problem, bytes, programme, seriesId } = recording;
  const { subtitle = "", episode = "", description = "" } = programme ?? {};
  const about = { subtitle, episode, description, series_id: seriesId };
  const url = bytes === 0 ? null : `${base}/recordings/${id}.ts`;
  const matroska = recording.matroska && {
    ...recording.matroska,
    url: recording.matroska.state === "ready" ? `${base}/recordings/${id}.mkv` : null,
  };
  return {
    ...{ id, item_id: itemId, title, channel, start, stop, state, problem, ...about, bytes, url, matroska },
    torrent: presentShare(shares.get(id)),
  };
}

function presentShare(shared: SharedRecording | undefined): z.output<typeof recordingResult>["torrent"] {
  if (shared === undefined) return null;
  const { uploadedBytes: uploaded, ...more } = shared;
  return { ...more, uploaded };
}
