import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";

/** Unpacks zlib data (RFC 1950) of a few KB; rejects with `SluiceError` where they are broken or grow beyond the limit. */
export async function inflateZlib(packed: Uint8Array, limitBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([packed.slice()]).stream().pipeThrough(new DecompressionStream("deflate"));
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (const reader = stream.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) return concatBytes(parts);
      length += value.length;
      if (length > limitBytes) {
        await reader.cancel();
        throw new SluiceError("broken_media", `packed data of more than ${limitBytes} bytes`);
      }
      parts.push(value);
    }
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw new SluiceError("broken_media", "packed data that cannot be unpacked", { cause: error });
  }
}
