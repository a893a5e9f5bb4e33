import { z } from "zod";
import { exampleOf, type JsonSchema } from "./openapi-examples.ts";

/** One parameter of an operation. */
export interface OpenApiParameter {
  readonly name: string;
  readonly in: "query" | "path";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

/** One response of an operation, or a reference to a response of the document. */
export interface OpenApiResponse {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;
}

/** One HTTP method of one path. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  /** Empty if the operation needs no token. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  /** Whether it needs no token. */
  readonly "x-public"?: boolean;
  /** Whether clients of other hosts may call it. */
  readonly "x-remote"?: boolean;
  /** Whether pages of other sites may call it. */
  readonly "x-other-pages"?: boolean;
  /** Whether it is an extension that the interface's tables do not list. */
  readonly "x-extra"?: boolean;
  readonly parameters: readonly OpenApiParameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
}

/** The operations of one path, by HTTP method. */
export type OpenApiPath = Readonly<Partial<Record<"get" | "post", OpenApiOperation>>>;

/** Converts a zod schema to JSON Schema, for input or output. Allows additional members, which clients ignore. */
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

/** Converts a zod schema to a query parameter, which is required if the schema rejects undefined. */
export function queryParameter(name: string, schema: z.ZodType): OpenApiParameter {
  const { description, "x-expected": _, ...json } = jsonSchemaOf(schema, "input");
  const about = typeof description === "string" ? { description } : {};
  const required = !schema.safeParse(undefined).success;
  const example = exampleOf(json, name);
  return { name, in: "query", required, ...about, schema: json, ...(example !== undefined && { example }) };
}

/** Returns the query parameters of an object schema. */
export function queryParameters(schema: z.ZodType): readonly OpenApiParameter[] {
  return Object.entries(shapeOf(schema)).map(([name, member]) => queryParameter(name, member));
}

/** Returns the members of an object schema by name, also if a transform follows it. */
export function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> {
  if (schema instanceof z.ZodObject) return schema.shape as Record<string, z.ZodType>;
  if (schema instanceof z.ZodPipe) return shapeOf(schema.in as z.ZodType);
  return {};
}

/** Builds a required path parameter. */
export function pathParameter(name: string, description: string): OpenApiParameter {
  return { name, in: "path", required: true, description, schema: { type: "string" } };
}

/** Builds an optional query parameter of text. */
export function textParameter(name: string, description: string): OpenApiParameter {
  return { ...pathParameter(name, description), in: "query", required: false };
}

function textResponse(description: string, example: string): OpenApiResponse {
  return { description, content: { "text/plain": { schema: { type: "string" }, example } } };
}

/** The responses that several operations share. */
export const OPENAPI_RESPONSES: Readonly<Record<string, OpenApiResponse>> = {
  BadRequest: textResponse(
    "A parameter is invalid or missing",
    "no content selected: give one of content_id, …",
  ),
  AccessDenied: textResponse(
    "This client or the page of another site may not send this request",
    "access denied",
  ),
  NotFound: textResponse("The content, session or item does not exist", "unknown playback session id"),
  Misdirected: textResponse(
    "The Host header names another host; see the setting allowed-hosts",
    "this engine does not answer to that address: use http://192.168.1.5:6878/",
  ),
  Failure: textResponse("The error text, with the status from the table of errors", "start timeout"),
};

/** The refusals of every path, before any method or content is considered. */
export const REFUSALS: Readonly<Record<string, OpenApiResponse>> = {
  403: { $ref: "#/components/responses/AccessDenied" },
  421: { $ref: "#/components/responses/Misdirected" },
};

/** The error responses of operations that do not answer JSON. */
export const ERROR_RESPONSES: Readonly<Record<string, OpenApiResponse>> = {
  400: { $ref: "#/components/responses/BadRequest" },
  404: { $ref: "#/components/responses/NotFound" },
  ...REFUSALS,
  default: { $ref: "#/components/responses/Failure" },
};

/** Builds a JSON response with an example. `more` completes the example. */
export function jsonResponse(description: string, schema: JsonSchema, example?: unknown): OpenApiResponse {
  return {
    description,
    content: { "application/json": { schema, ...(example !== undefined && { example }) } },
  };
}

/**
 * Builds the schema of an envelope: the value, or null and the error. It is one object and no choice of two, because generated clients
 * drop members that are always null.
 */
export function envelope(member: "result" | "response", value: JsonSchema, error: JsonSchema): JsonSchema {
  const none = { type: "null" };
  const properties = { [member]: { anyOf: [value, none] }, error: { anyOf: [error, none] } };
  return { type: "object", properties, required: [member, "error"] };
}

/** Builds a reference to a schema of the document. */
export function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}
