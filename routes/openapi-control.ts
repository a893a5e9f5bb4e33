import { CONTROL_SECTIONS } from "./control/control.ts";
import { TRANSPORT_FILE_DATA } from "./control/form.ts";
import type { ControlMethod } from "./control/method.ts";
import { exampleOf } from "./openapi-examples.ts";
import {
  envelope,
  jsonResponse,
  jsonSchemaOf,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPath,
  type OpenApiResponse,
  queryParameters,
  REFUSALS,
  reference,
} from "./openapi-parts.ts";

/** Describes each control method as an operation of its own path (`method-paths` in docs/choices.md). */
export function controlPaths(): Record<string, OpenApiPath> {
  const paths: Record<string, OpenApiPath> = {};
  for (const { title, methods } of CONTROL_SECTIONS) {
    for (const method of methods) paths[`/server/api/${method.name}`] = pathOf(method, title);
  }
  return paths;
}

function pathOf(method: ControlMethod, tag: string): OpenApiPath {
  const get = operationOf(method, tag, queryParameters(method.params));
  if (method.files === undefined) return { get };
  return { get, post: { ...get, operationId: `${method.name}_upload`, requestBody: bodyOf(method.files) } };
}

function operationOf(
  method: ControlMethod,
  tag: string,
  parameters: readonly OpenApiParameter[],
): OpenApiOperation {
  return {
    operationId: method.name,
    tags: [tag],
    summary: method.summary,
    security: method.isPublic ? [] : [{ token: [] }],
    "x-public": method.isPublic,
    "x-remote": method.isRemote,
    "x-other-pages": method.isPublic && method.isCrossOrigin,
    "x-extra": method.isExtra ?? false,
    parameters,
    responses: responsesOf(method),
  };
}

/** Describes the request body: JSON for a transport file, a form for all other files. */
function bodyOf(files: Readonly<Record<string, string>>) {
  if (TRANSPORT_FILE_DATA in files) {
    const base64 = { type: "string", contentEncoding: "base64" };
    const schema = { type: "object", properties: { [TRANSPORT_FILE_DATA]: base64 } };
    return { content: { "application/json": { schema } } };
  }
  const properties = Object.entries(files).map(
    ([name, description]) => [name, { type: "string", format: "binary", description }] as const,
  );
  const schema = { type: "object", properties: Object.fromEntries(properties) };
  return { content: { "multipart/form-data": { schema } } };
}

function responsesOf(method: ControlMethod): Readonly<Record<string, OpenApiResponse>> {
  const result = jsonSchemaOf(method.result, "output");
  if (result.format === "binary") {
    const type = String(result.contentMediaType);
    const schema = { type: "string", format: "binary" };
    return {
      200: { description: String(result.description), content: { [type]: { schema } } },
      ...(type === "image/*" && { 404: { $ref: "#/components/responses/NotFound" } }),
      ...REFUSALS,
    };
  }
  const schema = envelope("result", result, reference("ControlError"));
  const example = { result: exampleOf(result), error: null };
  return { 200: jsonResponse("The result or an error", schema, example), ...REFUSALS };
}
