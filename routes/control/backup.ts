import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { attachment } from "../http/responses.ts";
import { controlMethod, okResult, PRIVATE_LOCAL } from "./method.ts";

/** The backup of the database, and its restore. It contains the access token and the keys of broadcasts, so only this host may read it. */
export const backupMethods = [
  controlMethod({
    name: "get_backup",
    summary:
      "Downloads what `sluice backup` writes: playlists, accounts, the access token and the keys of broadcasts",
    isExtra: true,
    ...PRIVATE_LOCAL,
    params: z.object({}),
    result: z.unknown().meta({
      type: "string",
      format: "binary",
      contentMediaType: "application/octet-stream",
      description: "The backup, which `sluice restore` reads; an error as JSON if it cannot be made",
    }),
    async run(_, { dependencies, context }) {
      const { backup } = dependencies;
      if (backup === undefined)
        throw new SluiceError("bad_configuration", "store is memory: there is no database to back up");
      const day = new Date().toISOString().slice(0, 10);
      const headers = {
        "content-type": "application/octet-stream",
        "cache-control": "no-store",
        ...attachment(`sluice-${day}.backup`),
      };
      // The body of a response to HEAD is never read, so its backup would never end.
      if (context.req.raw.method === "HEAD") return context.body(null, 200, headers);
      const chunks = backup()[Symbol.asyncIterator]();
      // Most errors occur before the first chunk; then the response describes the error.
      return context.body(streamOf(await chunks.next(), chunks), 200, headers);
    },
  }),
  controlMethod({
    name: "restore_backup",
    summary:
      "Restarts the engine with the backup that was uploaded to /api/restore; the former database is kept as a copy",
    isExtra: true,
    ...PRIVATE_LOCAL,
    params: z.object({}),
    result: okResult,
    async run(_, { dependencies: { restore } }) {
      if (restore === undefined)
        throw new SluiceError("bad_configuration", "a backup can be restored only while sluice serve runs");
      restore.start();
      return "ok";
    },
  }),
  controlMethod({
    name: "get_restore",
    summary: "Returns the outcome of the last restore since the program started",
    isExtra: true,
    ...PRIVATE_LOCAL,
    params: z.object({}),
    result: z.object({
      outcome: z
        .object({
          records: z.int(),
          problem: z
            .string()
            .nullable()
            .describe("Why the backup was not restored; the database is then unchanged"),
        })
        .nullable(),
    }),
    async run(_, { dependencies: { restore } }) {
      const outcome = restore?.outcome;
      return { outcome: outcome ? { records: outcome.records, problem: outcome.problem ?? null } : null };
    },
  }),
];

/** The chunks of a backup, driven by the reader's pull. An error in the middle breaks the response off, so the file has no end mark. */
function streamOf(
  first: IteratorResult<Uint8Array, unknown>,
  rest: AsyncIterator<Uint8Array, unknown>,
): ReadableStream<Uint8Array> {
  let next: IteratorResult<Uint8Array, unknown> | undefined = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = next ?? (await rest.next());
        next = undefined;
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await rest.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
