import { SluiceError } from "../../src/base/errors.ts";
import { bodyChunks } from "../body-chunks.ts";
import { transportFileOf } from "../transport-file-body.ts";
import { boundaryOf, readMultipart } from "./multipart.ts";
import { clipped, type RawParameters, type UploadedFile } from "./params.ts";

/** More than a browser's form, and than the longest list of ids. */
const MAX_URLENCODED_BYTES = 1024 * 1024;
/** Names given, each counted as often as it is given. */
const MAX_PARAMETERS = 2_000;
/** Bodies read at the same time: each may hold an upload in memory. */
const MAX_BODIES = 4;

/** The name under which the transport file of a JSON body is found. */
export const TRANSPORT_FILE_DATA = "transport_file_data";

/** Reads what came with a call; `bad_parameter`, `too_large`, `too_many` where it cannot. */
export class FormReader {
  #bodies = 0;

  /** The values of the query, then those of the body, by name. */
  async read(request: Request): Promise<RawParameters> {
    const parameters = queryOf(request);
    if (request.method !== "POST" || !request.body) return parameters.all;
    if (this.#bodies >= MAX_BODIES) throw new SluiceError("too_many", `${MAX_BODIES} uploads are being read`);
    this.#bodies++;
    try {
      await readBody(request, parameters);
    } finally {
      this.#bodies--;
    }
    return parameters.all;
  }
}

/** The values of a query alone. */
export function queryParameters(request: Request): RawParameters {
  return queryOf(request).all;
}

function queryOf(request: Request): Parameters {
  const parameters = new Parameters();
  for (const [name, value] of new URL(request.url).searchParams) parameters.add(name, value);
  return parameters;
}

async function readBody(request: Request, parameters: Parameters): Promise<void> {
  const contentType = request.headers.get("content-type") ?? "";
  const type = contentType.split(";", 1)[0]!.trim().toLowerCase();
  if (type === "multipart/form-data") {
    const expectedBytes = Number(request.headers.get("content-length") ?? 0);
    const parts = await readMultipart(request.body!, { boundary: boundaryOf(contentType), expectedBytes });
    for (const part of parts) parameters.add(part.name, part.value);
    return;
  }
  if (type === "application/x-www-form-urlencoded") {
    for (const [name, value] of new URLSearchParams(await limitedText(request.body!)))
      parameters.add(name, value);
    return;
  }
  if (type === "application/json" || type === "text/plain" || type === "") {
    // Clients post transport files with or without a type that says JSON.
    const bytes = await transportFileOf(request);
    if (bytes) parameters.add(TRANSPORT_FILE_DATA, { filename: "", mime: "application/x-bittorrent", bytes });
    return;
  }
  const expected = "expected multipart/form-data, application/x-www-form-urlencoded or application/json";
  throw new SluiceError("bad_parameter", `content-type: ${expected}, got "${clipped(type)}"`);
}

/** Gathers values by name, and counts them. Names are whatever the sender likes: no prototype is behind them. */
class Parameters {
  readonly all: Record<string, (string | UploadedFile)[]> = Object.create(null);
  #count = 0;

  add(name: string, value: string | UploadedFile): void {
    if (++this.#count > MAX_PARAMETERS)
      throw new SluiceError("too_large", `more than ${MAX_PARAMETERS} parameters`);
    this.all[name] ??= [];
    this.all[name].push(value);
  }
}

async function limitedText(body: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  for await (const chunk of bodyChunks(body)) {
    length += chunk.length;
    if (length > MAX_URLENCODED_BYTES)
      throw new SluiceError("too_large", `a form of more than ${MAX_URLENCODED_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
