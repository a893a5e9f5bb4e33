import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { playOrder } from "../base/play-order.ts";
import type { TransferLease } from "../playback/contract.ts";
import { pieceStream } from "../remux/piece-stream.ts";
import type { Config } from "../settings/settings.ts";
import type { ContentFile, Transfer } from "../transfer/contract.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { printable } from "./log.ts";
import { refuseRaw, streamBytes, streamUrl } from "./play-stream.ts";
import { findPlayer, playIn } from "./players.ts";
import { ProgressLine } from "./progress.ts";
import { besideEngine } from "./second-engine.ts";
import { selectorOf } from "./selector.ts";
import { openService, type Service } from "./service.ts";
import { stopSignals } from "./stop-signals.ts";
import { bytesText } from "./units.ts";
import { writeTo } from "./write-to.ts";

type Format = "raw" | "ts";

/** Update interval of the progress line. */
const PROGRESS_MS = 500;

/** State of one `play`. */
interface Playing {
  readonly context: Context;
  readonly service: Service;
  readonly progress: ProgressLine;
  readonly transfer: Transfer;
  readonly file: ContentFile;
  /** The files to play one after another, `file` first. */
  readonly parts: readonly ContentFile[];
  readonly format: Format;
  readonly signal: AbortSignal;
}

/** `sluice play`: plays content in a player, or writes it to a file or standard output. Resolves to the exit code. */
export async function play(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const named = args.operands[0];
  if (named === undefined)
    throw usageError("play: expected a magnet, an infohash, a transport file, a link or a URL");
  const format = formatOf(args);
  const index = indexOf(args);
  const output = args.flags.get("output");
  const isList = args.flags.has("list");
  // Fail before the swarm is joined if no player is installed.
  const needsPlayer = output === undefined && !isList;
  const player = needsPlayer ? await findPlayer(context.environment, args.flags.get("player")) : undefined;
  const selector = await selectorOf(named);

  const stop = stopSignals(log);
  const isJson = args.flags.has("json");
  const progress = new ProgressLine(
    {
      isTerminal: context.stderr.isTTY === true && !isJson,
      // A terminal of unknown width reports 0.
      columns: context.stderr.columns || 80,
      write: (text) => void context.stderr.write(text),
    },
    isJson,
  );
  const service = await openService({ ...context, config: besideEngine(config), log });
  let lease: TransferLease | undefined;
  try {
    lease = await service.engine.acquire(selector, {
      signal: stop.signal,
      allowPrivateUrls: true,
      onProgress: ({ connectedPeers, bytesPerSecondDown }) =>
        progress.show(
          {
            doing: "opening",
            peers: connectedPeers,
            bytesPerSecond: bytesPerSecondDown,
            done: undefined,
            size: undefined,
          },
          performance.now(),
        ),
    });
    const { transfer, selectedFiles } = lease;
    if (isList) {
      progress.end();
      context.stdout.write(isJson ? contentJson(transfer) : contentText(transfer));
      return 0;
    }
    const parts = chooseFiles(transfer, index ?? selectedFiles?.[0]);
    const file = parts[0]!;
    const isStream = transfer.segmentSource !== undefined;
    if (isStream && args.flags.has("format")) refuseRaw(format);
    const playing: Playing = {
      context,
      service,
      progress,
      transfer,
      file,
      parts,
      format,
      signal: stop.signal,
    };
    const showing = setInterval(() => showProgress(playing), PROGRESS_MS);
    try {
      if (typeof output === "string") await (isStream ? writeStream : writeFile)(playing, output);
      else if (player !== undefined) return await playInPlayer(playing, player);
      return 0;
    } finally {
      clearInterval(showing);
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    progress.end();
    lease?.release();
    await service.close();
    stop.release();
  }
}

async function writeFile(playing: Playing, output: string): Promise<void> {
  const { transfer, file, format, context, signal } = playing;
  const bytes =
    format === "raw"
      ? transfer.source(file.index).open({ start: 0, end: file.size })
      : await transportStream(transfer, file.index, signal);
  const written = await writeTo(bytes, output, context.stdout, signal);
  playing.progress.end();
  if (output !== "-") context.stderr.write(`${printable(output)}: ${written} bytes\n`);
}

/** Records a live stream until Ctrl-C; the recording is kept. */
async function writeStream(playing: Playing, output: string): Promise<void> {
  const { service, transfer, context, signal } = playing;
  const bytes = await streamBytes(service, transfer, signal);
  const written = await writeTo(bytes, output, context.stdout, new AbortController().signal);
  playing.progress.end();
  if (output !== "-") context.stderr.write(`${printable(output)}: ${written} bytes\n`);
}

/** The file as one transport stream; it is remuxed while it is read. */
async function transportStream(
  transfer: Transfer,
  fileIndex: number,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const media = await transfer.media(fileIndex, {}, signal);
  const remux = await media.remux("ts", 0, undefined, signal);
  return pieceStream(remux, { signal }).pipeThrough(remux.remuxer);
}

async function playInPlayer(playing: Playing, player: string): Promise<number> {
  const { service, transfer, file, format, progress, context, signal } = playing;
  const listener = await service.listen({ host: "127.0.0.1", port: 0 });
  try {
    const base = `http://127.0.0.1:${listener.address.port}`;
    const urls = transfer.segmentSource
      ? [streamUrl(base, transfer)]
      : playing.parts.map(({ index, name }) =>
          format === "raw"
            ? `${base}/files/${transfer.infohash}/${index}/${encodeURIComponent(name.split("/").pop() ?? "file")}`
            : `${base}/ace/getstream?infohash=${transfer.infohash}&_idx=${index}`,
        );
    progress.end();
    context.stderr.write(`${printable(file.name)} in ${player}\n`);
    return await playIn(player, urls, signal);
  } finally {
    await listener.close();
  }
}

function showProgress({ transfer, file, progress }: Playing): void {
  const { connectedPeers, bytesPerSecondDown } = transfer.figures;
  const live = transfer.live?.figures();
  progress.show(
    {
      doing: live ? transfer.name : (file.name.split("/").pop() ?? file.name),
      peers: connectedPeers,
      bytesPerSecond: bytesPerSecondDown,
      done: file.size > 0 ? (transfer.progress(file.index) / 100) * file.size : undefined,
      size: file.size,
      ...(live?.lastSeq !== undefined && { behindMs: live.lagMs }),
    },
    performance.now(),
  );
}

/** The chosen file, or without an index the files to play one after another; never empty. */
function chooseFiles(transfer: Transfer, index: number | undefined): ContentFile[] {
  if (index === undefined) return playOrder(transfer.files);
  const file = transfer.files.find((one) => one.index === index);
  if (file !== undefined) return [file];
  const list = transfer.files.slice(0, 50).map((one) => `\n  ${one.index}  ${printable(one.name)}`);
  throw new SluiceError("no_such_file", `no file has the index ${index}. Files:${list.join("")}`);
}

/** The files of the content, one a line: index, size, name. */
function contentText({ name, files }: Transfer): string {
  const rows = files.map(({ index, size, name }) => {
    const sizeText = size > 0 ? bytesText(size) : "live";
    return `${String(index).padStart(5)}  ${sizeText.padStart(8)}  ${printable(name)}`;
  });
  return `${printable(name)}\n${rows.join("\n")}\n`;
}

function contentJson({ name, infohash, files }: Transfer): string {
  const list = files.map(({ index, name, size, isPlayable }) => ({
    index,
    name,
    size,
    playable: isPlayable,
  }));
  return `${JSON.stringify({ name, infohash, files: list })}\n`;
}

function formatOf(args: Arguments): Format {
  const written = args.flags.get("format") ?? "raw";
  if (written === "raw" || written === "ts") return written;
  throw usageError(`--format: expected raw or ts, got "${written}"`);
}

function indexOf(args: Arguments): number | undefined {
  const written = args.flags.get("index");
  if (written === undefined) return undefined;
  if (typeof written === "string" && /^\d{1,6}$/.test(written)) return Number(written);
  throw usageError(`--index: expected a whole number from 0, got "${written}"`);
}
