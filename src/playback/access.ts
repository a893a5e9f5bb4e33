import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { playOrder } from "../base/play-order.ts";
import type { Clock } from "../runtime/contract.ts";
import type {
  ContentFile,
  ContentSelector,
  EngineSettings,
  Transfer,
  TransferContent,
} from "../transfer/contract.ts";
import type { LiveRole } from "../wire/live/peer-info.ts";
import type { RoleKey } from "../wire/live/role-proof.ts";
import type {
  AcquireOptions,
  ChooseRange,
  ContentResolver,
  FileRead,
  ReadOptions,
  TransferLease,
} from "./contract.ts";
import { guardedStream } from "./guarded-stream.ts";
import type { Holds } from "./holds.ts";
import { awaitFiles, playingTimeouts } from "./timeouts.ts";

/** What content is opened with. */
export interface Access {
  readonly clock: Clock;
  readonly settings: EngineSettings;
  readonly resolve: ContentResolver;
  readonly holds: Holds;
}

/** Opens the content that a selector names and waits until its files are known. Rejects with `SluiceError`. */
export async function acquire(
  access: Access,
  selector: ContentSelector,
  options: AcquireOptions = {},
): Promise<TransferLease> {
  const { signal, allowPrivateUrls = false } = options;
  const { content, selectedFiles } = await access.resolve(selector, { allowPrivateUrls, signal });
  const withOptions = options.liveRole ? withRole(content, options.liveRole, options.roleKey) : content;
  const hold = access.holds.open(withOptions, options.isForeign);
  try {
    await awaitFiles(access, hold.transfer, options);
  } catch (thrown) {
    hold.release();
    throw thrown;
  }
  return { ...hold, selectedFiles };
}

function withRole(content: TransferContent, role: LiveRole, roleKey?: RoleKey): TransferContent {
  const proof = roleKey && { roleKey };
  return {
    ...content,
    liveRole: role,
    ...proof,
    ...(content.live && { live: { ...content.live, role, ...proof } }),
  };
}

/** Reads bytes of one file; see `Engine.read`. Rejects with `SluiceError`. */
export async function readFile(
  access: Access,
  infohash: Infohash,
  fileIndex: number,
  choose: ChooseRange,
  { signal, isForeign = false }: ReadOptions = {},
): Promise<FileRead> {
  const lease = await acquire(access, { kind: "infohash", infohash }, { signal, isForeign });
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
      stallMs: playingTimeouts(access).settings.startTimeoutMs,
      signal,
      ended: lease.release,
    });
    isHandedOver = true;
    return { file, stream };
  } finally {
    if (!isHandedOver) lease.release();
  }
}

/** Returns the file with this index; throws `no_such_file`. */
export function fileAt(transfer: Transfer, fileIndex: number): ContentFile {
  const file = transfer.files.find(({ index }) => index === fileIndex);
  if (file) return file;
  throw new SluiceError(
    "no_such_file",
    `expected a file index below ${transfer.files.length}, got ${fileIndex}`,
  );
}

/** The first segment usually needs this much of the head of a file. */
const HEAD_BYTES = 2 * 1024 * 1024;

/** Returns the progress of a start, 0 to 99; only for display. */
export function startProgress(transfer: Transfer, file: ContentFile | undefined): number {
  if (!file) return 0;
  const needed = Math.max(1, Math.min(HEAD_BYTES, file.size));
  return Math.min(99, Math.floor((100 * transfer.headBytes(file.index)) / needed));
}

/**
 * Returns the file to play: the requested one; else the first file selected by the link that is playable by its name; else the first
 * one of {@link playOrder}. Throws `no_such_file` or `unsupported_content`.
 */
export function chooseFile(
  transfer: Transfer,
  requested: number | undefined,
  selected: readonly number[] | undefined,
): ContentFile {
  if (requested !== undefined) return fileAt(transfer, requested);
  const isSelected = (file: ContentFile) => file.isPlayable && selected?.includes(file.index);
  const chosen = transfer.files.find(isSelected) ?? playOrder(transfer.files)[0];
  if (chosen) return chosen;
  throw new SluiceError("unsupported_content", "this content has no files");
}
