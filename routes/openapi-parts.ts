import { z } from "zod";

/** Any JSON Schema (2020-12, as OpenAPI 3.1 takes it). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One parameter of an operation. */
export interface OpenApiParameter {
  readonly name: string;
  readonly in: "query" | "path";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

/** One answer of an operation. */
export interface OpenApiAnswer {
  readonly description: string;
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

/** What one method of HTTP does at one path. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  /** Absent: whatever the document says; empty: no token. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  /** Callable from other addresses than this host's. */
  readonly "x-remote"?: boolean;
  /** Callable because of pages of other sites. */
  readonly "x-other-pages"?: boolean;
  /** Not of the interface's own tables. */
  readonly "x-extra"?: boolean;
  readonly parameters: readonly OpenApiParameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
  readonly responses: Readonly<Record<string, OpenApiAnswer>>;
}

/** The operations of one path, by the method of HTTP. */
export type OpenApiPath = Readonly<Partial<Record<"get" | "post", OpenApiOperation>>>;

/** A schema as JSON Schema: what goes in, or what comes out. Objects may have more members: clients ignore those. */
export function jsonSchemaOf(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return rest;
}

/** A parameter of the query, as its schema reads it: it is required where the schema does not do without. */
export function queryParameter(name: string, schema: z.ZodType): OpenApiParameter {
  const { description, "x-expected": _, ...json } = jsonSchemaOf(schema, "input");
  const about = typeof description === "string" ? { description } : {};
  return { name, in: "query", required: !schema.safeParse(undefined).success, ...about, schema: json };
}

/** The parameters of a schema, by name, whatever is checked of them together. */
export function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> {
  if (schema instanceof z.ZodObject) return schema.shape as Record<string, z.ZodType>;
  if (schema instanceof z.ZodPipe) return shapeOf(schema.in as z.ZodType);
  return {};
}

/** An answer of JSON. */
export function jsonAnswer(description: string, schema: JsonSchema): OpenApiAnswer {
  return { description, content: { "application/json": { schema } } };
}

/** A reference to a part of the document. */
export function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}
