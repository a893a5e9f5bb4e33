import { z } from "zod";
import type { EngineActivity } from "../../src/engine/engine.ts";
import type { SessionActivity, TransferActivity } from "../../src/playback/contract.ts";
import { describeError } from "../http/errors.ts";

/** More would be a blur in a picture of the swarm. */
const MAX_NODES = 60;

const bytes = z.int().describe("Bytes");
const rate = z.int().describe("Bytes per second");

const sessionSchema = z.object({
  infohash: z.string(),
  key: z.string().describe("The last part of the session's URLs, such as /ace/cmd/<infohash>/<key>"),
  player: z.string().describe("The user agent of the player; empty if it sent none"),
  address: z
    .string()
    .nullable()
    .describe("The address of the player; only for clients on this host, otherwise null"),
  output: z.enum(["ts", "hls"]),
  status: z.enum(["starting", "playing", "failed"]),
  problem: z.string().nullable(),
  buffering: z.string().nullable().describe("Why the player waits"),
  progress: z.int().describe("Progress of the start, in percent"),
  held: z.int().describe("Held share of the file, in percent"),
  file_index: z.int(),
  is_live: z.boolean(),
  is_played: z.boolean().describe("The player reads now"),
  is_converted: z.boolean().describe("The audio is converted"),
  started_at: z.int().describe("UNIX seconds"),
  behind_live: z.number().nullable().describe("Seconds from the player's position to the live edge"),
  window: z.number().nullable().describe("Seconds of the live stream that the player can seek in"),
});

const transferSchema = z.object({
  infohash: z.string(),
  name: z.string(),
  kind: z
    .enum(["files", "live", "own", "web"])
    .describe("own: a broadcast of this engine; web: content of a web server"),
  users: z.int().describe("Sessions and other users; 0: it only seeds, and will be closed"),
  size: bytes.describe("Bytes; 0 for a stream"),
  held: bytes.describe("Bytes that are held in memory or on disk"),
  peers: z.int(),
  candidates: z.int().describe("Addresses of peers that are known"),
  seeds: z.int(),
  web_seeds: z.int(),
  speed_down: rate,
  speed_up: rate,
  downloaded: bytes,
  uploaded: bytes,
  wasted: bytes.describe("Bytes that were received twice or failed verification"),
  nodes: z
    .array(z.object({ client: z.string(), up: rate, down: rate }))
    .describe(`At most ${MAX_NODES} connected peers, those with the highest rates first, without addresses`),
  download_limit: rate.describe("The transfer's own limit in bytes per second; 0: none"),
  upload_limit: rate.describe("The transfer's own limit in bytes per second; 0: none"),
  origins: z.record(z.string(), z.int()).describe("Peers by the source of their address"),
});

/** The schema of the sessions and transfers. */
export const activitySchema = z.object({
  sessions: z.array(sessionSchema),
  transfers: z.array(transferSchema),
});

/** Converts sessions and transfers to JSON. `isHost`: with the addresses of players, which only the owner of this host may see. */
export function presentActivity(
  { sessions, transfers }: EngineActivity,
  isHost: boolean,
): z.output<typeof activitySchema> {
  return {
    sessions: sessions.map((session) => presentSession(session, isHost)),
    transfers: transfers.map(presentTransfer),
  };
}

/** CHOICE(player-addresses): another device with the token sees which programs play, but not from which address. */
function presentSession(session: SessionActivity, isHost: boolean): z.output<typeof sessionSchema> {
  const { client, live, problem, buffering } = session;
  return {
    infohash: session.infohash,
    key: session.key,
    player: client?.program ?? "",
    address: isHost ? (client?.host ?? null) : null,
    output: session.output,
    status: session.status,
    problem: problem === undefined ? null : (describeError(problem)?.text ?? problem.message),
    buffering: buffering?.sentence ?? null,
    progress: Math.floor(session.progress),
    held: Math.floor(session.totalProgress),
    file_index: session.fileIndex,
    is_live: session.isLive,
    is_played: session.isPlayed,
    is_converted: session.isConverted,
    started_at: session.startedAt,
    behind_live: live === undefined ? null : Math.max(0, live.lastAt - live.position),
    window: live === undefined ? null : live.lastAt - live.firstAt,
  };
}

function presentTransfer({
  infohash,
  name,
  kind,
  holders,
  size,
  heldBytes,
  figures,
  limits,
}: TransferActivity) {
  const origins: Record<string, number> = {};
  for (const { origin } of figures.peers) origins[origin] = (origins[origin] ?? 0) + 1;
  return {
    infohash,
    name,
    kind,
    users: holders,
    size,
    held: heldBytes,
    peers: figures.connectedPeers,
    candidates: figures.knownCandidates,
    seeds: figures.seeds,
    web_seeds: figures.webSeeds,
    speed_down: Math.round(figures.bytesPerSecondDown),
    speed_up: Math.round(figures.bytesPerSecondUp),
    downloaded: figures.downloaded,
    uploaded: figures.uploaded,
    wasted: figures.wasted,
    download_limit: limits.download,
    upload_limit: limits.upload,
    nodes: figures.peers
      .map(({ client, bytesPerSecondUp, bytesPerSecondDown }) => ({
        client,
        up: Math.round(bytesPerSecondUp),
        down: Math.round(bytesPerSecondDown),
      }))
      .sort((a, b) => b.up + b.down - (a.up + a.down))
      .slice(0, MAX_NODES),
    origins,
  };
}
