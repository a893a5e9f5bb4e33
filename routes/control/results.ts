import { z } from "zod";

/** Most methods that change something answer this word (interface: Endpoints). */
export const okResult = z.literal("ok");

/** The version that `get_version` and `get_status` tell. */
export const versionResult = z.object({
  version: z.string().describe("The generation of the interface that is spoken"),
  code: z.int().describe("The same as a number: major · 1,000,000 + minor · 10,000 + patch · 100"),
  platform: z.enum(["linux", "win32", "android"]),
  engine: z.string().describe("The name of this program"),
  engine_version: z.string().describe("The version of this program"),
  device_id: z.string().optional().describe("With params=device-id, for own pages"),
});

/** An error inside a result (interface: Errors 3). */
export const elementError = z.object({
  error: z.object({ message: z.string(), code: z.int() }),
});

/** A picture, sent as it is. */
export const imageResult = z.unknown().meta({
  type: "string",
  format: "binary",
  description: "The picture itself; 404 with plain text where there is none",
});
