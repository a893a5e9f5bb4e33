import { SluiceError } from "../../src/base/errors.ts";
import { limitedText, transportFileOf } from "../http/request-body.ts";
import { type BodyLimits, BodySlots, type Sender } from "./body-slots.ts";
import { boundaryOf, readMultipart } from "./multipart.ts";
import { clipped, type RawParameters, type UploadedFile } from "./params.ts";

/** Larger than any form of a browser and the longest list of ids. */
const MAX_URLENCODED_BYTES = 1024 * 1024;
/** Counts every value of a repeated name. */
const MAX_PARAMETERS = 2_000;
/** An upload may use 55 MB of memory, and take minutes on a slow link. */
const UPLOADS: BodyLimits = { total: 4, perSender: 2 };
/** A page may send several URL-encoded forms at once. */
const FORMS: BodyLimits = { total: 64, perSender: 16 };

const URLENCODED = "application/x-www-form-urlencoded";

/** The parameter name of the transport file in a JSON body. */
export const TRANSPORT_FILE_DATA = "transport_file_data";

/** Reads the parameters of a call. Rejects with `bad_parameter`, `too_large` or `too_many`. */
export class FormReader {
  readonly #uploads = new BodySlots(UPLOADS);
  readonly #forms = new BodySlots(FORMS);

  /** Returns all values by name: first those of the query, then those of the body. */
  async read(request: Request, sender: Sender): Promise<RawParameters> {
    const parameters = queryOf(request);
    if (request.method !== "POST" || !request.body) return parameters.all;
    const slots = typeOf(request) === URLENCODED ? this.#forms : this.#uploads;
    const release = slots.take(sender);
    try {
      await readBody(request, parameters);
    } finally {
      release();
    }
    return parameters.all;
  }
}

/** Returns the values of the query by name. Throws `too_large`. */
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
  if (type === URLENCODED) {
    const text = await limitedText(
      request.body!,
      MAX_URLENCODED_BYTES,
      () => new SluiceError("too_large", `the form is larger than ${MAX_URLENCODED_BYTES} bytes`),
    );
    for (const [name, value] of new URLSearchParams(text)) parameters.add(name, value);
    return;
  }
  if (type === "application/json" || type === "text/plain" || type === "") {
    // Clients post the JSON of a transport file with or without its content type.
    const bytes = await transportFileOf(request);
    if (bytes) parameters.add(TRANSPORT_FILE_DATA, { filename: "", mime: "application/x-bittorrent", bytes });
    return;
  }
  const expected = "expected multipart/form-data, application/x-www-form-urlencoded or application/json";
  throw new SluiceError("bad_parameter", `content-type: ${expected}, got "${clipped(type)}"`);
}

/** Collects and counts values by name. The object has no prototype, because clients choose the names. */
class Parameters {
  readonly all: Record<string, (string | UploadedFile)[]> = Object.create(null);
  #count = 0;

  add(name: string, value: string | UploadedFile): void {
    if (++this.#count > MAX_PARAMETERS)
      throw new SluiceError("too_large", `the request has more than ${MAX_PARAMETERS} parameters`);
    this.all[name] ??= [];
    this.all[name].push(value);
  }
}
