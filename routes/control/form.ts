import { SluiceError } from "../../src/base/errors.ts";
import { bodyChunks } from "../body-chunks.ts";
import { transportFileOf } from "../transport-file-body.ts";
import { type BodyLimits, BodySlots, type Sender } from "./body-slots.ts";
import { boundaryOf, readMultipart } from "./multipart.ts";
import { clipped, type RawParameters, type UploadedFile } from "./params.ts";

/** More than a browser's form, and than the longest list of ids. */
const MAX_URLENCODED_BYTES = 1024 * 1024;
/** Names given, each counted as often as it is given. */
const MAX_PARAMETERS = 2_000;
/** Uploads may take 55 MB of memory each, and a weak link a minute or two. */
const UPLOADS: BodyLimits = { total: 4, perSender: 2 };
/** Of plain forms a page may send several at once. */
const FORMS: BodyLimits = { total: 64, perSender: 16 };

const PLAIN_FORM = "application/x-www-form-urlencoded";

/** The name under which the transport file of a JSON body is found. */
export const TRANSPORT_FILE_DATA = "transport_file_data";

/** Reads what came with a call; `bad_parameter`, `too_large`, `too_many` where it cannot. */
export class FormReader {
  readonly #uploads = new BodySlots(UPLOADS);
  readonly #forms = new BodySlots(FORMS);

  /** The values of the query, then those of the body, by name. */
  async read(request: Request, sender: Sender): Promise<RawParameters> {
    const parameters = queryOf(request);
    if (request.method !== "POST" || !request.body) return parameters.all;
    const slots = typeOf(request) === PLAIN_FORM ? this.#forms : this.#uploads;
    const release = slots.take(sender);
    try {
      await readBody(request, parameters);
    } finally {
      release();
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

function typeOf(request: Request): string {
  return (request.headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

async function readBody(request: Request, parameters: Parameters): Promise<void> {
  const contentType = request.headers.get("content-type") ?? "";
  const type = typeOf(request);
  if (type === "multipart/form-data") {
    const expectedBytes = Number(request.headers.get("content-length") ?? 0);
    const parts = await readMultipart(request.body!, { boundary: boundaryOf(contentType), expectedBytes });
    for (const part of parts) parameters.add(part.name, part.value);
    return;
  }
  if (type === PLAIN_FORM) {
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
