import { SluiceError, type SluiceErrorCode } from "../base/errors.ts";
import type { Access } from "./access.ts";
import { type AnalysisParts, analyze } from "./analyze.ts";
import { WebLook } from "./analyze-answer.ts";
import { hlsNature, MANIFEST_LIMIT_BYTES, natureOf } from "./analyze-hls.ts";
import { contentFiles } from "./content-files.ts";
import type {
  ContentDescription,
  ContentSelector,
  InspectOptions,
  Inspector,
  TransferContent,
  Transfers,
} from "./contract.ts";
import type { FoundManifest } from "./http/probe.ts";
import type { WebContent } from "./http/web-content.ts";
import { KeptNames } from "./kept-names.ts";
import { type KnownFile, titleOf } from "./known-file.ts";
import { liveFiles } from "./live/live-content.ts";
import { awaitFiles } from "./patience.ts";

/** What the inspector is made of. */
export interface InspectorParts extends Omit<AnalysisParts, "readTransportFile" | "transfers"> {
  readonly access: Access;
  readonly transfers: Transfers;
}

/** Because of these nobody could be asked; the question stays open. */
const NOBODY_KNOWS: ReadonlySet<SluiceErrorCode> = new Set(["no_peers", "metadata_timeout", "start_timeout"]);

/** The inspector of this engine. */
export function createInspector(parts: InspectorParts): Inspector {
  const { transfers, access } = parts;
  const readTransportFile = async (bytes: Uint8Array) => {
    const selector = { kind: "transport_file", bytes } as const;
    return fileOf((await access.resolve(selector, { allowPrivateUrls: false })).content)!;
  };
  const names = new KeptNames(parts.clock, transfers);
  const analysis: AnalysisParts = { ...parts, readTransportFile };
  const describe = (selector: ContentSelector, options: InspectOptions) =>
    describeContent(parts, selector, options);
  return {
    describe,
    async keep(bytes) {
      const file = await readTransportFile(bytes);
      await transfers.keep(file);
      return describeFile(file);
    },
    async contentIdOf(infohash, options) {
      const { contentId } = await describe({ kind: "infohash", infohash }, options).catch((thrown) => {
        if (!(thrown instanceof SluiceError) || !NOBODY_KNOWS.has(thrown.code)) throw thrown;
        throw new SluiceError(
          "content_id_unknown",
          `no transport file of ${infohash} is to be had: ${thrown.message}`,
          {
            cause: thrown,
          },
        );
      });
      if (contentId) return contentId;
      throw new SluiceError("content_id_unknown", `${infohash} has no transport file`);
    },
    analyze: (query, title, options) => analyze(analysis, query, title, options),
    search: (text, limit) => names.search(text, limit),
  };
}

async function describeContent(
  parts: InspectorParts,
  selector: ContentSelector,
  options: InspectOptions,
): Promise<ContentDescription> {
  // What is asked of a server has to be there in the time of one look.
  const look = new WebLook(parts, options);
  const asked = { ...options, manifestLimitBytes: MANIFEST_LIMIT_BYTES };
  const { content, manifest } = await parts.access.resolve(selector, asked);
  if (content.web) return describeWeb(look, content, content.web, manifest);
  const known = fileOf(content);
  if (known) return describeFile(known);
  const { transfer, release } = parts.access.holds.open(content);
  try {
    await awaitFiles(parts.access, transfer, options);
    const { name, infohash, contentId, files, live } = transfer;
    if (live) return { ...describeFile({ kind: "live", file: live.content.file }), contentId };
    const file = transfer.transportFile();
    return { type: "vod", name, infohash, contentId, files, transportType: "bt", transportFile: file?.bytes };
  } finally {
    release();
  }
}

function fileOf({ live, transportFile }: TransferContent): KnownFile | undefined {
  if (live) return { kind: "live", file: live.file };
  return transportFile && { kind: "vod", file: transportFile };
}

function describeFile(known: KnownFile): ContentDescription {
  const { infohash, contentId, bytes } = known.file;
  return {
    type: known.kind,
    name: titleOf(known),
    infohash,
    contentId,
    files: known.kind === "live" ? liveFiles(known.file) : contentFiles(known.file.info),
    transportType: "bt",
    transportFile: bytes,
  };
}

async function describeWeb(
  look: WebLook,
  { infohash }: TransferContent,
  { url, kind, name, mime, size, allowPrivate }: WebContent,
  manifest: FoundManifest | undefined,
): Promise<ContentDescription> {
  const nature = () =>
    manifest
      ? natureOf(look, manifest)
      : look.at(url, "HLS manifest", (answer) => hlsNature(look, answer), { allowPrivate });
  const isLive = kind === "hls" ? (await nature()).isLive === 1 : kind === "stream";
  return {
    name,
    infohash,
    contentId: undefined,
    type: isLive ? "live" : "vod",
    transportType: kind === "hls" ? "hls" : "wrapper",
    files: [{ index: 0, name, size, offset: 0, mime, isPlayable: true }],
    transportFile: undefined,
  };
}
