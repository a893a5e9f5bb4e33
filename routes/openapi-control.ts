import { CONTROL_SECTIONS } from "./control/control.ts";
import { TRANSPORT_FILE_DATA } from "./control/form.ts";
import type { ControlMethod } from "./control/method.ts";
import {
  jsonAnswer,
  jsonSchemaOf,
  type OpenApiAnswer,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPath,
  queryParameter,
  reference,
  shapeOf,
} from "./openapi-parts.ts";

const API_VERSION: OpenApiParameter = {
  name: "api_version",
  in: "query",
  required: false,
  description: "2 and 3: errors are objects; 1 or none: errors are text",
  schema: { type: "integer", enum: [1, 2, 3], default: 1 },
};

/**
 * The control methods: each is an operation of its own. OpenAPI knows no paths with a query, so the name stands behind
 * `#`, which no client sends, and once more in the parameter `method`.
 */
export function controlPaths(): Record<string, OpenApiPath> {
  const paths: Record<string, OpenApiPath> = {};
  for (const { title, methods } of CONTROL_SECTIONS) {
    for (const method of methods) paths[`/server/api#${method.name}`] = pathOf(method, title);
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
  const name: OpenApiParameter = {
    name: "method",
    in: "query",
    required: true,
    schema: { type: "string", enum: [method.name] },
  };
  return {
    operationId: method.name,
    tags: [tag],
    summary: method.summary,
    security: method.isPublic ? [] : [{ token: [] }],
    "x-remote": method.isRemote,
    "x-other-pages": method.isPublic && method.isOpenToPages,
    "x-extra": method.isExtra ?? false,
    parameters: [name, API_VERSION, ...parameters],
    responses: answersOf(method),
  };
}

/** A transport file comes as JSON, all other files in a form. */
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

function answersOf(method: ControlMethod): Readonly<Record<string, OpenApiAnswer>> {
  const result = jsonSchemaOf(method.result, "output");
  if (result.format === "binary") {
    const picture = { type: "string", format: "binary" };
    return {
      200: { description: "The picture", content: { "image/*": { schema: picture } } },
      404: {
        description: "There is none",
        content: { "text/plain": { schema: { type: "string" } } },
      },
    };
  }
  const success = {
    type: "object",
    properties: { result, error: { type: "null" } },
    required: ["result", "error"],
  };
  return { 200: jsonAnswer("The result, or the error", { oneOf: [success, reference("ControlFailure")] }) };
}
