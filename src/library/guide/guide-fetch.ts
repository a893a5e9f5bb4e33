import { createYielder } from "../../async/event-loop.ts";
import { DecodeError, SluiceError } from "../../base/errors.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock, Files, Runtime } from "../../runtime/contract.ts";
import { unzippedBody } from "../playlist-body.ts";
import { GuideFile } from "./guide-file.ts";
import type { SourceRecord } from "./guide-sources.ts";

/** Programmes that ended earlier are dropped: catch-up of a week. */
export const PAST_SECONDS = 7 * 86_400;
/** Programmes that start later are dropped. */
export const FUTURE_SECONDS = 15 * 86_400;
/** Decompressed. The largest public guides have about 1.5 GB. */
const MAX_GUIDE_BYTES = 4 * 2 ** 30;
const HEAD_TIMEOUT_MS = 60_000;
const IDLE_TIMEOUT_MS = 30_000;
const TIMEOUT_MS = 60 * 60_000;
/** Parsing so much takes a few milliseconds. */
const BLOCK_BYTES = 64 * 1024;
/** The parser leaves a string for each character of an attribute, and one for each part of a text. */
const GARBAGE_PER_BYTE = 8;
const MAX_ETAG = 200;

interface FetchDependencies {
  readonly outbound: Pick<Outbound, "open">;
  readonly clock: Clock;
  readonly files: Files;
  readonly discarded?: Runtime["discarded"];
}

/** A fetched guide; undefined `file` if the server says that it has not changed. */
interface FetchedGuide {
  readonly file: GuideFile | undefined;
  readonly etag: string;
}

/**
 * Fetches a guide into a new file at `path` while it arrives; memory stays bounded. Rejects with the errors of the outbound client
 * or with `DecodeError` if the guide is broken, truncated or has no programmes of these days; then there is no file.
 */
export async function fetchGuide(
  dependencies: FetchDependencies,
  record: SourceRecord,
  path: string,
  options: { readonly signal: AbortSignal; readonly onProgrammes: (count: number) => void },
): Promise<FetchedGuide> {
  const { outbound, files } = dependencies;
  const { signal } = options;
  const answer = await outbound.open(record.url, {
    limitBytes: MAX_GUIDE_BYTES,
    allowPrivate: record.allowPrivateUrls,
    headers: record.etag === "" ? {} : { "if-none-match": record.etag },
    signal,
    purpose: "programme guide",
    headTimeoutMs: HEAD_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    timeoutMs: TIMEOUT_MS,
  });
  if (answer.status !== 200) {
    await answer.body.cancel().catch(() => {}); // The body is not used.
    if (answer.status === 304 && record.etag !== "") return { file: undefined, etag: record.etag };
    throw new SluiceError(
      "url_unreachable",
      `the server of the programme guide returned status ${answer.status}`,
    );
  }
  const file = await GuideFile.create(files, path);
  try {
    const body = await unzippedBody(answer.body, MAX_GUIDE_BYTES, signal);
    await readGuide(body, file, dependencies, options);
    await file.finish(dependencies.discarded);
  } catch (error) {
    await file.close();
    await files.remove(path);
    throw error;
  }
  const etag = answer.headers.get("etag") ?? "";
  return { file, etag: etag.length <= MAX_ETAG ? etag : "" };
}

async function readGuide(
  body: ReadableStream<Uint8Array>,
  file: GuideFile,
  { clock, discarded }: Pick<FetchDependencies, "clock" | "discarded">,
  { onProgrammes }: { readonly onProgrammes: (count: number) => void },
): Promise<void> {
  const from = clock.unixSeconds() - PAST_SECONDS;
  const to = clock.unixSeconds() + FUTURE_SECONDS;
  // Loaded here, because most engines never read a guide.
  const { XmltvReader } = await import("./xmltv-reader.ts");
  const reader = new XmltvReader({
    channel: (channel) => file.addChannel(channel),
    programme(programme) {
      if (programme.start < to && (programme.stop ?? programme.start) > from) file.addProgramme(programme);
    },
  });
  const yieldIfDue = createYielder(clock);
  let decoder: TextDecoder | undefined;
  const source = body.getReader();
  try {
    for (;;) {
      const { done, value } = await source.read();
      if (done) break;
      for (let at = 0; at < value.length; at += BLOCK_BYTES) {
        const block = value.subarray(at, at + BLOCK_BYTES);
        decoder ??= decoderOf(block);
        reader.push(decoder.decode(block, { stream: true }));
        discarded?.(GARBAGE_PER_BYTE * block.length);
        await file.flush();
        await yieldIfDue();
      }
      onProgrammes(file.programmeCount);
    }
  } catch (error) {
    await source.cancel(error).catch(() => {}); // `error` is the more useful one.
    throw error;
  }
  reader.push(decoder?.decode() ?? "");
  reader.end();
  if (file.programmeCount === 0)
    throw new DecodeError("XMLTV", 0, "the guide has no programmes of these days");
}

/** The decoder of the encoding that the XML declaration names (XML 1.0, 4.3.3); UTF-8 without one. */
function decoderOf(head: Uint8Array): TextDecoder {
  const start = String.fromCharCode(...head.subarray(0, 200));
  const name = /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(name);
  } catch {
    return new TextDecoder();
  }
}
