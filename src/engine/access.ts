import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Clock } from "../runtime/contract.ts";
import type { LiveRole } from "../wire/live-hello.ts";
import type { ContentResolver } from "./content.ts";
import type { ContentFile, ContentSelector, EngineSettings, Transfer, TransferContent } from "./contract.ts";
import type { AcquireOptions, ChooseRange, FileRead, TransferLease } from "./engine.ts";
import { guardedStream } from "./guarded-stream.ts";
import type { Holds } from "./holds.ts";
import { awaitFiles, onceBegun } from "./patience.ts";

/** What it takes to get at content. */
export interface Access {
  readonly clock: Clock;
  readonly settings: EngineSettings;
  readonly resolve: ContentResolver;
  readonly holds: Holds;
}

/** Holds the transfer of what a selector names, its files known. */
export async function acquire(
  access: Access,
  selector: ContentSelector,
  options: AcquireOptions = {},
): Promise<TransferLease> {
  const { signal, allowPrivateUrls = false } = options;
  const { content, selectedFiles } = await access.resolve(selector, { allowPrivateUrls, signal });
  const hold = access.holds.open(options.liveRole ? inRole(content, options.liveRole) : content);
  try {
    await awaitFiles(access, hold.transfer, options);
  } catch (thrown) {
    hold.release();
    throw thrown;
  }
  return { transfer: hold.transfer, selectedFiles, release: hold.release };
}

function inRole(content: TransferContent, role: LiveRole): TransferContent {
  return { ...content, liveRole: role, ...(content.live && { live: { ...content.live, role } }) };
}

/** One file as it is: see `Engine.read`. */
export async function readFile(
  access: Access,
  infohash: Infohash,
  fileIndex: number,
  choose: ChooseRange,
  signal?: AbortSignal,
): Promise<FileRead> {
  const lease = await acquire(access, { kind: "infohash", infohash }, signal && { signal });
  let isHandedOver = false;
  try {
    const file = fileAt(lease.transfer, fileIndex);
    const range = choose(file);
    if (!range) return { file, stream: undefined };
    const stream = await guardedStream(lease.transfer.source(fileIndex).reader(range), {
      clock: access.clock,
      transfer: lease.transfer,
      startMs: access.settings.startTimeoutMs,
      peersMs: access.settings.peersTimeoutMs,
      stallMs: onceBegun(access).settings.startTimeoutMs,
      signal,
      ended: lease.release,
    });
    isHandedOver = true;
    return { file, stream };
  } finally {
    if (!isHandedOver) lease.release();
  }
}

/** The file of this index; throws `no_such_file`. */
function fileAt(transfer: Transfer, fileIndex: number): ContentFile {
  const file = transfer.files.find(({ index }) => index === fileIndex);
  if (file) return file;
  throw new SluiceError(
    "no_such_file",
    `expected a file index below ${transfer.files.length}, got ${fileIndex}`,
  );
}

/**
 * The file to play: the asked one; else the first that the link selects and whose name says it can be played; else
 * the largest such; else, since names can be anything, the largest of all.
 */
export function chooseFile(
  transfer: Transfer,
  asked: number | undefined,
  selected: readonly number[] | undefined,
): ContentFile {
  if (asked !== undefined) return fileAt(transfer, asked);
  const playable = transfer.files.filter((file) => file.isPlayable);
  const chosen =
    playable.find((file) => selected?.includes(file.index)) ?? largest(playable) ?? largest(transfer.files);
  if (chosen) return chosen;
  throw new SluiceError("unsupported_content", "this content has no files");
}

function largest(files: readonly ContentFile[]): ContentFile | undefined {
  return files.reduce<ContentFile | undefined>(
    (best, file) => (best && best.size >= file.size ? best : file),
    undefined,
  );
}
