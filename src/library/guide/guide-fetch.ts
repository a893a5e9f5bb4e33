import { SluiceError } from "../../base/errors.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock, Files, Runtime } from "../../runtime/contract.ts";
import { GuideFile } from "./guide-file.ts";
import { MAX_GUIDE_BYTES, type ReadGuide } from "./guide-reading.ts";
import type { SourceRecord } from "./guide-sources.ts";

/** Programmes that ended earlier are dropped: catch-up of a week. */
export const PAST_SECONDS = 7 * 86_400;
/** Programmes that start later are dropped. */
export const FUTURE_SECONDS = 15 * 86_400;
const HEAD_TIMEOUT_MS = 60_000;
const IDLE_TIMEOUT_MS = 30_000;
const TIMEOUT_MS = 60 * 60_000;
const MAX_ETAG = 200;

interface FetchDependencies {
  readonly outbound: Pick<Outbound, "open">;
  readonly clock: Clock;
  readonly files: Files;
  readonly discarded?: Runtime["discarded"];
  readonly readGuide: ReadGuide;
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
  const { outbound, clock, files, discarded, readGuide } = dependencies;
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
  const etag = answer.headers.get("etag") ?? "";
  try {
    const now = clock.unixSeconds();
    const [from, to] = [now - PAST_SECONDS, now + FUTURE_SECONDS] as [UnixSeconds, UnixSeconds];
    await readGuide(answer.body, path, { ...options, from, to });
    return { file: await GuideFile.open(files, path, discarded), etag: etag.length <= MAX_ETAG ? etag : "" };
  } catch (error) {
    await files.remove(path);
    throw error;
  }
}
