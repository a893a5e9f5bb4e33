import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { clientNetworkOf } from "../http/access.ts";
import type { BroadcastEntry, BroadcastService, RouteDependencies } from "../http/dependencies.ts";
import { broadcastOptionsOf, broadcastParams } from "./broadcast-params.ts";
import { type ControlCall, controlMethod, okResult, PRIVATE, PRIVATE_LOCAL } from "./method.ts";
import { clipped, required, text } from "./params.ts";

const id = z.string().nullable();

const broadcastResult = z.object({
  name: z.string().describe("The name for broadcast_stop"),
  title: z.string(),
  source: z.string().nullable().describe("null for the test pattern"),
  status: z
    .enum(["standby", "waiting", "good", "silent", "late", "forked", "ended", "failed"])
    .describe("standby: another machine is on air; failed: not on air, the engine retries"),
  remark: z.string().describe("The status as a sentence, with its main figure"),
  infohash: id,
  content_id: id,
  magnet: id,
  link: id.describe("The link that viewers open: sluice:?magnet=…"),
  transport_file: id.describe("The path of the transport file on the engine's disk"),
  is_private: z.boolean(),
  started_at: z.int().nullable().describe("UNIX seconds"),
  peers: z.int(),
  children: z.int().describe("Peers that receive the stream from this engine"),
  head: z.int().nullable().describe("The sequence number of the newest piece"),
  head_at: z.number().nullable().describe("The time of the newest piece, in UNIX milliseconds"),
  bitrate: z.int().nullable().describe("Bits per second, by the clock of the stream"),
  speed_up: z.int().describe("Bytes per second to all peers together"),
  uploaded: z.int().describe("Bytes"),
  publish_urls: z
    .array(z.string())
    .describe(
      "Where a program such as OBS publishes the stream, if the source is rtmp://, or srt:// on this machine",
    ),
  stream_key: id.describe(
    "The key for publish_urls, of SRT the passphrase; only for clients on this host, otherwise null",
  ),
});

const nameParams = z.object({ name: required(text).describe("A name from broadcast_list") });

/**
 * Broadcasts of this engine, which restart with it.
 *
 * CHOICE(broadcast-access): only this host may start and stop broadcasts; other clients with the token may list them.
 */
export const broadcastMethods = [
  controlMethod({
    name: "broadcast_start",
    summary: "Starts a broadcast, which restarts with the engine",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object(broadcastParams),
    result: broadcastResult,
    run: async (params, { dependencies, context }) =>
      present(await broadcastService(dependencies).start(broadcastOptionsOf(params)), context),
  }),
  controlMethod({
    name: "broadcast_stop",
    summary: "Stops a broadcast; a later start with the same name keeps the infohash",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: nameParams,
    result: okResult,
    async run({ name }, { dependencies }) {
      await broadcastService(dependencies).stop(name);
      return "ok";
    },
  }),
  controlMethod({
    name: "broadcast_list",
    summary: "Lists the broadcasts of this engine and their status",
    ...PRIVATE,
    isExtra: true,
    params: z.object({}),
    result: z.object({ broadcasts: z.array(broadcastResult) }),
    run: async (_, { dependencies, context }) => ({
      broadcasts: (dependencies.broadcasts?.list() ?? []).map((each) => present(each, context)),
    }),
  }),
  controlMethod({
    name: "broadcast_get_status",
    summary: "Returns the status of a broadcast",
    ...PRIVATE,
    isExtra: true,
    params: nameParams,
    result: broadcastResult,
    async run({ name }, { dependencies, context }) {
      const found = dependencies.broadcasts?.list().find((each) => each.name === name);
      if (found) return present(found, context);
      throw new SluiceError("unknown_broadcast", `${clipped(name)}; see broadcast_list`);
    },
  }),
];

function present(entry: BroadcastEntry, { env }: ControlCall["context"]) {
  return presentBroadcast(entry, clientNetworkOf(env.origin) === "local");
}

function broadcastService({ broadcasts }: RouteDependencies): BroadcastService {
  if (broadcasts) return broadcasts;
  throw new SluiceError("bad_configuration", "broadcasting is not available in this engine");
}

/** Removes the login and the query from a source URL: clients that may list broadcasts must not learn the camera's password. */
function publicSource(source: string): string {
  if (!/^(https?|srt):/i.test(source) || !URL.canParse(source)) return source;
  const { protocol, host, pathname } = new URL(source);
  return `${protocol}//${host}${pathname}`;
}

/** Converts a broadcast to JSON. `isHost`: with the stream key, which only this host may see. */
export function presentBroadcast(
  { name, options, broadcast, problem }: BroadcastEntry,
  isHost: boolean,
): z.output<typeof broadcastResult> {
  const figures = broadcast?.figures();
  const rate = figures?.bytesPerSecond;
  return {
    name,
    title: broadcast?.request.meta.title ?? options?.title ?? name,
    source: options?.source == null ? null : publicSource(options.source),
    status: problem === undefined ? (figures?.health ?? "waiting") : "failed",
    remark: problem ?? figures?.remark ?? "",
    infohash: broadcast?.infohash ?? null,
    content_id: broadcast?.contentId ?? null,
    magnet: broadcast?.magnet ?? null,
    link: broadcast?.link ?? null,
    transport_file: broadcast?.transportFilePath ?? null,
    is_private: broadcast?.request.isPrivate ?? options?.isPrivate ?? false,
    started_at: broadcast?.startedAt ?? null,
    peers: figures?.peers ?? 0,
    children: figures?.children ?? 0,
    head: figures?.seq ?? null,
    head_at: figures?.pieceAtMs ?? null,
    bitrate: rate === undefined ? null : Math.round(8 * rate),
    speed_up: Math.round(figures?.uploadBytesPerSecond ?? 0),
    uploaded: figures?.uploaded ?? 0,
    publish_urls: [...(broadcast?.publishing?.urls ?? [])],
    stream_key: (isHost && broadcast?.publishing?.key) || null,
  };
}
