import { z } from "zod";
import { SluiceError } from "../src/base/errors.ts";
import { bodyChunks } from "./body-chunks.ts";

/** A transport file of 10 MB as base64, and the JSON around it. */
const BODY_LIMIT_BYTES = 14_000_000;

const uploadSchema = z.object({ transport_file_data: z.string().min(1) });

/**
 * The transport file of `POST {"transport_file_data": base64}`; undefined where the body is empty. Rejects with
 * `bad_transport_file`.
 */
export async function transportFileOf(request: Request): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const body = await bodyText(request);
  if (body.trim() === "") return undefined;
  try {
    return decodeBase64(uploadSchema.parse(JSON.parse(body)).transport_file_data);
  } catch (thrown) {
    const expected = 'expected {"transport_file_data": "<base64>"} as the request body';
    throw new SluiceError("bad_transport_file", expected, { cause: thrown });
  }
}

/** Reads no further than the limit, whatever the length header says. */
async function bodyText(request: Request): Promise<string> {
  if (!request.body) return "";
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  for await (const chunk of bodyChunks(request.body)) {
    length += chunk.length;
    if (length > BODY_LIMIT_BYTES)
      throw new SluiceError("bad_transport_file", `a body of more than ${BODY_LIMIT_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Base64 in either alphabet, padded or not. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const standard = text.replaceAll("-", "+").replaceAll("_", "/").replaceAll(/\s/g, "");
  const binary = atob(standard);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
