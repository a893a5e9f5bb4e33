import type { z } from "zod";
import { badParameter } from "../params.ts";

/** The parameters of one call, from its query and its form. */
export interface CallParameters {
  /** The first value of a name, trimmed; undefined where it is absent or empty. */
  text(name: string): string | undefined;
  /** All of them, as a schema reads them; throws `missing_parameter` or `bad_parameter`. */
  read<Schema extends z.ZodType>(schema: Schema): z.output<Schema>;
}

/** Reads query and form (RFC 7578, or URL-encoded). */
export async function callParameters(request: Request): Promise<CallParameters> {
  const query = new URL(request.url).searchParams;
  const values = Object.fromEntries([...query.keys()].map((name) => [name, query.getAll(name)]));
  return {
    text: (name) => query.get(name)?.trim() || undefined,
    read(schema) {
      const result = schema.safeParse(values);
      if (!result.success) throw badParameter(result.error);
      return result.data;
    },
  };
}
