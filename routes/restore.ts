import { type Context, Hono } from "hono";
import { z } from "zod";
import { SluiceError } from "../src/base/errors.ts";
import type { Library } from "../src/library/library.ts";
import { authorizeOwner } from "./control/authorize.ts";
import { PRIVATE_LOCAL } from "./control/method.ts";
import type { RestoreService, RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { bodyChunks } from "./http/request-body.ts";
import { controlFailure, success } from "./http/responses.ts";

/** A backup replaces the access token and the keys of broadcasts, so only this host may upload one. */
const ACCESS = { name: "restore", ...PRIVATE_LOCAL } as const;

const count = z.int();
const contents = z.object({
  ...{ channels: count, playlists: count, guides: count, accounts: count, broadcasts: count },
  ...{ recordings: count, watched: count },
  records: count.describe("All records, also those of no kind above"),
  files: count.describe("Logos, transport files, and files of broadcasts"),
});

/** The answer of `POST /api/restore`. */
export const receivedSchema = z.object({
  backup: contents.describe("What the uploaded backup contains"),
  present: contents.describe("What the database contains at present, and `restore_backup` replaces"),
});

type RestoreDependencies = RouteDependencies & {
  readonly library: Library;
  readonly restore: RestoreService;
};

/**
 * Serves `POST /api/restore`: receives a backup as the body, checks all of it, and answers what it contains; `restore_backup` then restores
 * it. The body is not a form, because it is larger than forms may be, and goes to the disk while it arrives.
 */
export function createRestoreRoutes(dependencies: RestoreDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.post("/api/restore", async (c: Context<RouteEnv>) => {
    await authorizeOwner(ACCESS, c, dependencies);
    const { body } = c.req.raw;
    if (body === null) throw new SluiceError("bad_parameter", "expected a backup as the body");
    return success(c, "result", await dependencies.restore.receive(bodyChunks(body)));
  });
  app.onError((thrown, c) => controlFailure(c, "3", thrown));
  return app;
}
