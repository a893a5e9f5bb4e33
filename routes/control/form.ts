import { SluiceError } from "../../src/base/errors.ts";
import type { UploadedFile } from "../http/dependencies.ts";
import { limitedText, transportFileOf } from "../http/request-body.ts";
import { type BodyLimits, BodySlots, type Sender } from "./body-slots.ts";
import { boundaryOf, readMultipart } from "./multipart.ts";
import { clipped } from "./params.ts";

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

  /** Returns the texts of the query followed by those of the body, and the files of the body. */
  async read(request: Request, sender: Sender): Promise<Pick<Form, "texts" | "files">> {
    const form = new Form(checkedQuery(request));
    if (request.method !== "POST" || !request.body) return form;
    const slots = typeOf(request) === URLENCODED ? this.#forms : this.#uploads;
    const release = slots.take(sender);
    try {
      await readBody(request, form);
    } finally {
      release();
    }
    return form;
  }
}

/** Returns the query. Throws `too_large`. */
export function checkedQuery(request: Request): URLSearchParams {
  const query = new URL(request.url).searchParams;
  if (query.size > MAX_PARAMETERS) throw tooMany();
  return query;
}

function typeOf(request: Request): string {
  return (request.headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

async function readBody(request: Request, form: Form): Promise<void> {
  const contentType = request.headers.get("content-type") ?? "";
  const type = typeOf(request);
  if (type === "multipart/form-data") {
    const expectedBytes = Number(request.headers.get("content-length") ?? 0);
    const parts = await readMultipart(request.body!, { boundary: boundaryOf(contentType), expectedBytes });
    for (const part of parts) form.add(part.name, part.value);
    return;
  }
  if (type === URLENCODED) {
    const text = await limitedText(
      request.body!,
      MAX_URLENCODED_BYTES,
      () => new SluiceError("too_large", `the form is larger than ${MAX_URLENCODED_BYTES} bytes`),
    );
    for (const [name, value] of new URLSearchParams(text)) form.add(name, value);
    return;
  }
  if (type === "application/json" || type === "text/plain" || type === "") {
    // Clients post the JSON of a transport file with or without its content type.
    const bytes = await transportFileOf(request);
    if (bytes) form.add(TRANSPORT_FILE_DATA, { filename: "", mime: "application/x-bittorrent", bytes });
    return;
  }
  const expected = "expected multipart/form-data, application/x-www-form-urlencoded or application/json";
  throw new SluiceError("bad_parameter", `content-type: ${expected}, got "${clipped(type)}"`);
}

/** Collects the texts and files of a call, and counts them. */
class Form {
  readonly texts: URLSearchParams;
  /** The object has no prototype, because clients choose the names. */
  readonly files: Record<string, UploadedFile> = Object.create(null);
  #count: number;

  constructor(query: URLSearchParams) {
    this.texts = query;
    this.#count = query.size;
  }

  add(name: string, value: string | UploadedFile): void {
    if (++this.#count > MAX_PARAMETERS) throw tooMany();
    if (typeof value === "string") this.texts.append(name, value);
    // An empty file field counts as absent.
    else if (value.filename !== "" || value.bytes.length > 0) this.files[name] ??= value;
  }
}

function tooMany(): SluiceError {
  return new SluiceError("too_large", `the request has more than ${MAX_PARAMETERS} parameters`);
}
