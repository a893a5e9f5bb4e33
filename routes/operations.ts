import { Hono } from "hono";
import { z } from "zod";
import type { Library } from "../src/library/library.ts";
import { authorizeOwner } from "./control/authorize.ts";
import type { OperationsService, RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { spacedJson, textResponse } from "./http/responses.ts";

/** The metrics show what the engine does, so clients of other hosts need the token. */
const METRICS_ACCESS = { name: "metrics", isPublic: false, isRemote: true, isCrossOrigin: false } as const;

const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The schema of the answer of `/readyz`. */
export const readinessSchema = z.object({
  status: z.enum(["ready", "not ready"]),
  checks: z.array(z.object({ name: z.string(), ok: z.boolean(), text: z.string() })),
});

/**
 * Serves what operators watch: `GET /healthz` (the process answers), `GET /readyz` (200 if every check passes, else 503) and
 * `GET /metrics` (Prometheus text format).
 */
export function createOperationsRoutes(
  dependencies: RouteDependencies & { readonly library: Library; readonly operations: OperationsService },
): Hono<RouteEnv> {
  const { operations } = dependencies;
  const app = new Hono<RouteEnv>();
  app.get("/healthz", (c) => textResponse(c, "ok\n", "text/plain; charset=utf-8"));
  app.get("/readyz", async (c) => {
    const checks = await operations.readiness();
    const isReady = checks.every(({ isOk }) => isOk);
    const body: z.infer<typeof readinessSchema> = {
      status: isReady ? "ready" : "not ready",
      checks: checks.map(({ name, isOk, text }) => ({ name, ok: isOk, text })),
    };
    return textResponse(c, `${spacedJson(body)}\n`, "application/json", isReady ? 200 : 503);
  });
  app.get("/metrics", async (c) => {
    await authorizeOwner(METRICS_ACCESS, c, dependencies);
    return textResponse(c, await operations.metrics(), METRICS_TYPE);
  });
  return app;
}
