import { Hono } from "hono";
import { z } from "zod";
import { addressText } from "../src/base/address.ts";
import type { Library } from "../src/library/library.ts";
import type { Buffering, Diagnosis, StreamDiagnosis } from "../src/playback/diagnosis/contract.ts";
import { authorizeOwner } from "./control/authorize.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { success } from "./http/responses.ts";

/** The diagnosis names peers and content, so clients of other hosts need the token. */
const ACCESS = { name: "diagnosis", isPublic: false, isRemote: true, isCrossOrigin: false } as const;

/** Serves `GET /api/diagnosis`: the state of the engine, and the reasons for it. */
export function createDiagnosisRoutes(
  dependencies: RouteDependencies & {
    readonly library: Library;
    readonly diagnose: () => Promise<Diagnosis>;
  },
): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/api/diagnosis", async (c) => {
    await authorizeOwner(ACCESS, c, dependencies);
    c.header("cache-control", "no-store");
    return success(c, "result", presentDiagnosis(await dependencies.diagnose()));
  });
  return app;
}

const buffering = z
  .object({ reason: z.string(), text: z.string() })
  .catchall(z.union([z.number(), z.string()]))
  .nullable();

/** The schema of the diagnosis. */
export const diagnosisSchema = z.object({
  rows: z.array(
    z.object({
      name: z.string(),
      level: z.enum(["ok", "note", "warn", "fail"]),
      text: z.string(),
      advice: z.string().nullable(),
    }),
  ),
  streams: z.array(
    z.object({
      infohash: z.string(),
      name: z.string(),
      players: z.array(z.object({ buffering })),
      origins: z.record(z.string(), z.number()),
      peers: z.array(
        z.object({
          address: z.string(),
          client: z.string(),
          origin: z.string(),
          bytes_per_second_down: z.number(),
          bytes_per_second_up: z.number(),
          slow: z.string().nullable(),
        }),
      ),
    }),
  ),
});

/** The schema of the response. */
export const diagnosisAnswer = z.object({ result: diagnosisSchema });

/** The diagnosis as JSON. */
export type PresentedDiagnosis = z.infer<typeof diagnosisSchema>;

/** Converts a diagnosis to JSON, with the member names of the HTTP interface. */
export function presentDiagnosis({ rows, streams }: Diagnosis): PresentedDiagnosis {
  return {
    rows: rows.map(({ name, level, text, advice = null }) => ({ name, level, text, advice })),
    streams: streams.map(presentStream),
  };
}

function presentStream({ infohash, name, playersBuffering, origins, peers }: StreamDiagnosis) {
  return {
    infohash,
    name,
    players: playersBuffering.map((buffering) => ({ buffering: presentBuffering(buffering) })),
    origins,
    peers: peers.map(({ address, client, origin, bytesPerSecondDown, bytesPerSecondUp, slow = null }) => ({
      address: addressText(address),
      client,
      origin,
      bytes_per_second_down: Math.round(bytesPerSecondDown),
      bytes_per_second_up: Math.round(bytesPerSecondUp),
      slow,
    })),
  };
}

/** Converts the reason why a player waits to JSON; null if it does not wait. */
export function presentBuffering(buffering: Buffering | undefined) {
  return buffering ? { reason: buffering.code, text: buffering.sentence, ...buffering.numbers } : null;
}
