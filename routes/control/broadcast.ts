import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { BroadcastDesk, House, OnAir } from "../house.ts";
import { broadcastParams, wishOf } from "./broadcast-params.ts";
import { controlMethod } from "./method.ts";
import { clipped, required, text } from "./params.ts";
import { okResult } from "./results.ts";

const id = z.string().nullable();

const broadcastResult = z.object({
  name: z.string().describe("What it is stopped by"),
  title: z.string(),
  source: z.string().nullable().describe("null for the test pattern"),
  status: z
    .enum(["standby", "waiting", "good", "silent", "late", "forked", "ended", "failed"])
    .describe("standby: on air elsewhere; failed: not on air, but tried again"),
  remark: z.string().describe("The same for people, with the number that matters"),
  infohash: id,
  content_id: id,
  magnet: id,
  link: id.describe("What viewers open: sluice:?magnet=…"),
  transport_file: id.describe("Where its transport file lies on the engine's disk"),
  is_private: z.boolean(),
  started_at: z.int().nullable().describe("UNIX seconds"),
  peers: z.int(),
  children: z.int().describe("Peers that are fed from here"),
  head: z.int().nullable().describe("The number of the newest piece"),
  head_at: z.number().nullable().describe("Its time, in UNIX milliseconds"),
  bitrate: z.int().nullable().describe("Bits a second of the stream, by its own clock"),
  speed_up: z.int().describe("Bytes a second to all peers together"),
  uploaded: z.int().describe("Bytes"),
});

/** Whoever broadcasts sits at the engine: what a neighbour may see is not what he may put on air. */
const here = { isPublic: false, isRemote: false, isOpenToPages: false, isExtra: true } as const;
const named = z.object({ name: required(text).describe("From broadcast_list") });

/**
 * Live streams of this engine's own; they are on air again after a restart.
 *
 * CHOICE(broadcast-askers): only this host starts and stops broadcasts; others may look, with the token.
 */
export const broadcastMethods = [
  controlMethod({
    name: "broadcast_start",
    summary: "Broadcasts a live stream, now and whenever the engine runs",
    ...here,
    params: z.object(broadcastParams),
    result: broadcastResult,
    run: async (params, { house }) => presented(await deskOf(house).start(wishOf(params))),
  }),
  controlMethod({
    name: "broadcast_stop",
    summary: "Ends a broadcast; the same name goes on with the same infohash when it is started again",
    ...here,
    params: named,
    result: okResult,
    async run({ name }, { house }) {
      await deskOf(house).stop(name);
      return "ok";
    },
  }),
  controlMethod({
    name: "broadcast_list",
    summary: "What is broadcast from here, and how it goes",
    ...here,
    isRemote: true,
    params: z.object({}),
    result: z.object({ broadcasts: z.array(broadcastResult) }),
    run: async (_, { house }) => ({ broadcasts: (house.broadcasts?.list() ?? []).map(presented) }),
  }),
  controlMethod({
    name: "broadcast_get_status",
    summary: "How one broadcast goes",
    ...here,
    isRemote: true,
    params: named,
    result: broadcastResult,
    async run({ name }, { house }) {
      const found = house.broadcasts?.list().find((each) => each.name === name);
      if (found) return presented(found);
      throw new SluiceError("unknown_broadcast", `${clipped(name)}; see broadcast_list`);
    },
  }),
];

function deskOf({ broadcasts }: House): BroadcastDesk {
  if (broadcasts) return broadcasts;
  throw new SluiceError("bad_configuration", "this engine was started without broadcasting");
}

/** Cameras and encoders are asked with a login in the URL: who may look at what is on air need not know it. */
function shownSource(source: string): string {
  if (!/^https?:/i.test(source) || !URL.canParse(source)) return source;
  const { protocol, host, pathname } = new URL(source);
  return `${protocol}//${host}${pathname}`;
}

function presented({ name, wish, broadcast, problem }: OnAir): z.output<typeof broadcastResult> {
  const figures = broadcast?.figures();
  const rate = figures?.bytesPerSecond;
  return {
    name,
    title: broadcast?.request.meta.title ?? wish?.title ?? name,
    source: wish?.source == null ? null : shownSource(wish.source),
    status: problem === undefined ? (figures?.health ?? "waiting") : "failed",
    remark: problem ?? figures?.remark ?? "",
    infohash: broadcast?.infohash ?? null,
    content_id: broadcast?.contentId ?? null,
    magnet: broadcast?.magnet ?? null,
    link: broadcast?.link ?? null,
    transport_file: broadcast?.transportFilePath ?? null,
    is_private: broadcast?.request.isPrivate ?? wish?.isPrivate ?? false,
    started_at: broadcast?.startedAt ?? null,
    peers: figures?.peers ?? 0,
    children: figures?.children ?? 0,
    head: figures?.seq ?? null,
    head_at: figures?.pieceAtMs ?? null,
    bitrate: rate === undefined ? null : Math.round(8 * rate),
    speed_up: Math.round(figures?.uploadBytesPerSecond ?? 0),
    uploaded: figures?.uploaded ?? 0,
  };
}
