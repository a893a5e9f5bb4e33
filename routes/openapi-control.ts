import { CONTROL_SECTIONS } from "./control/control.ts";
import { TRANSPORT_FILE_DATA } from "./control/form.ts";
import type { ControlMethod } from "./control/method.ts";
import { exampleOf } from "./openapi-examples.ts";
import {
  jsonResponse,
  jsonSchemaOf,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPath,
  type OpenApiResponse,
  queryParameter,
  REFUSALS,
  reference,
  shapeOf,
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
  const shape = Object.entries(shapeOf(method.params)).map(([name, schema]) => ({
    name,
    schema,
    parameter: queryParameter(name, schema),
  }));
  const files = shape.filter(({ parameter }) => parameter.schema.format === "binary");
  const get = operationOf(
    method,
    tag,
    shape.filter((each) => !files.includes(each)).map(({ parameter }) => parameter),
  );
  if (files.length === 0) return { get };
  const needsFile = files.some(({ parameter }) => parameter.required);
  const post: OpenApiOperation = { ...get, operationId: `${method.name}_upload`, requestBody: bodyOf(files) };
  return needsFile ? { post } : { get, post };
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
function bodyOf(files: readonly { readonly name: string; readonly parameter: OpenApiParameter }[]) {
  const properties = files.map(({ name, parameter }) => {
    const { description } = parameter;
    return [name, { type: "string", format: "binary", ...(description ? { description } : {}) }] as const;
  });
  if (files[0]?.name === TRANSPORT_FILE_DATA) {
    const base64 = { type: "string", contentEncoding: "base64" };
    const schema = { type: "object", properties: { [TRANSPORT_FILE_DATA]: base64 } };
    return { content: { "application/json": { schema } } };
  }
  const required = files.filter(({ parameter }) => parameter.required).map(({ name }) => name);
  const schema = { type: "object", properties: Object.fromEntries(properties), required };
  return { content: { "multipart/form-data": { schema } } };
}

function responsesOf(method: ControlMethod): Readonly<Record<string, OpenApiResponse>> {
  const result = jsonSchemaOf(method.result, "output");
  if (result.format === "binary") {
    const image = { type: "string", format: "binary" };
    return {
      200: { description: "The image", content: { "image/*": { schema: image } } },
      404: { $ref: "#/components/responses/NotFound" },
      ...REFUSALS,
    };
  }
  const success = {
    type: "object",
    properties: { result, error: { type: "null" } },
    required: ["result", "error"],
  };
  const schema = { oneOf: [success, reference("ControlFailure")] };
  const example = { result: exampleOf(result), error: null };
  return { 200: jsonResponse("The result or an error", schema, example), ...REFUSALS };
}
