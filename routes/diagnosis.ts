import { Hono } from "hono";
import { z } from "zod";
import { addressText } from "../src/base/address.ts";
import type { Diagnosis, HoldUp, StreamDiagnosis } from "../src/engine/diagnosis/contract.ts";
import type { Library } from "../src/library/library.ts";
import { askerOf } from "./access.ts";
import { admitToken } from "./control/admission.ts";
import { success } from "./envelope.ts";
import type { House, RouteEnv } from "./house.ts";

/** It names peers and what is played, so others than this host need the token for it. */
const ACCESS = { name: "diagnosis", isPublic: false, isRemote: true, isOpenToPages: false } as const;

/** `GET /api/diagnosis`: how the engine is doing, and why. */
export function createDiagnosisRoutes(
  house: House & { readonly library: Library; readonly diagnose: () => Promise<Diagnosis> },
): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/api/diagnosis", async (c) => {
    // In a header (RFC 6750 2.1) it is part of no address.
    const token = c.req.query("token") ?? /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
    if (askerOf(c.env.origin) !== "local") await admitToken(ACCESS, c, house, token);
    c.header("cache-control", "no-store");
    return success(c, "result", presentDiagnosis(await house.diagnose()));
  });
  return app;
}

const buffering = z
  .object({ reason: z.string(), text: z.string() })
  .catchall(z.union([z.number(), z.string()]))
  .nullable();

/** What it answers with. */
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

/** The answer as a value. */
export type PresentedDiagnosis = z.infer<typeof diagnosisSchema>;

/** The diagnosis as JSON, with the names that all answers use. */
export function presentDiagnosis({ rows, streams }: Diagnosis): PresentedDiagnosis {
  return {
    rows: rows.map(({ name, level, text, advice = null }) => ({ name, level, text, advice })),
    streams: streams.map(presentStream),
  };
}

function presentStream({ infohash, name, holdUps, origins, peers }: StreamDiagnosis) {
  return {
    infohash,
    name,
    players: holdUps.map((holdUp) => ({ buffering: presentHoldUp(holdUp) })),
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

/** Why a player waits, as `stat` tells it too. */
export function presentHoldUp(holdUp: HoldUp | undefined) {
  return holdUp ? { reason: holdUp.code, text: holdUp.sentence, ...holdUp.numbers } : null;
}
